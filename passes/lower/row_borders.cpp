#include "passes/lower/row_borders.h"

#include <algorithm>
#include <utility>

#include "ir/loop/visit.h"
#include "passes/lower/definition_cost.h"
#include "passes/schedule/affine.h"
#include "passes/schedule/partition.h"

namespace backcast {
namespace {

using loop::Axis;
using loop::Definition;
using loop::Expr;
using loop::ExprKind;
using loop::Kernel;
using loop::Op;

// The axis where it has been dealt with.
constexpr char kRow[] = "row";

bool is_lower(Op op) { return op == Op::ge || op == Op::gt; }
bool is_bound(Op op) { return is_lower(op) || op == Op::lt || op == Op::le; }

Op mirrored(Op op) {
  if (is_lower(op)) return op == Op::ge ? Op::le : Op::lt;
  return op == Op::le ? Op::ge : Op::gt;
}

class Placing {
 public:
  Placing(const Kernel& kernel, const RowKernel& by, const std::vector<RowPlace>& places,
          const std::set<size_t>& apart, const std::function<std::string(DimRange)>& name_size)
      : kernel_(kernel),
        by_(by),
        places_(places),
        name_size_(name_size),
        definition_(*loop::only_definition(kernel)) {
    placed_.kernel = with_parts(kernel, by, places.front().passed, apart);
    placed_.sizes.resize(places.size());
  }

  std::optional<PlacedKernel> run() {
    const auto part_of_row = [](const RowAccess& access) { return access.per != 1; };
    if (by_.sums || std::any_of(by_.reads.begin(), by_.reads.end(), part_of_row)) return {};
    find_indices();
    for (loop::DefinitionOutput& output : definition_.outputs) write(output);
    transform(definition_, [&](const Expr& e) -> Expr {
      if (e->kind == ExprKind::access) return read(e);
      if (e->kind == ExprKind::binary && is_bound(e->op)) return border(e).value_or(e);
      return e;
    });
    if (!all_found()) return {};
    Definition placed = moved(definition_, {{kRow, loop::var(by_.axis)}});
    for (Axis& axis : placed.axes) {
      if (axis.name == by_.axis) axis.extent = Expr(places_.front().rows.count());
    }
    placed_.kernel.body = loop::simplify(loop::define(std::move(placed)));
    for (const auto& [name, value] : placed_.sizes.front()) placed_.kernel.sizes.push_back(name);
    placed_.kernel.macs = kernel_.macs * places_.front().rows.count() / by_.rows;
    return std::move(placed_);
  }

 private:
  const RowAccess* access_of(const std::vector<RowAccess>& list, const std::string& name) const {
    const auto found = std::find_if(list.begin(), list.end(), [&](const RowAccess& access) {
      return kernel_.buffers[access.param].name == name;
    });
    return found == list.end() ? nullptr : &*found;
  }

  /// Every index by which rows reach operands.
  void find_indices() {
    for_each_access(definition_, [&](const loop::ExprNode& read, bool) {
      const RowAccess* access = access_of(by_.reads, read.name);
      if (access != nullptr) indices_.emplace_back(access, read.args[access->dimension]);
    });
  }

  /// What differs between places: a constant, and a size where it does.
  Expr size(const std::function<int64_t(const RowPlace&)>& value) {
    std::vector<int64_t> values;
    for (const RowPlace& place : places_) values.push_back(value(place));
    const auto [least, most] = std::minmax_element(values.begin(), values.end());
    const int64_t base = *least, range = *most - *least;
    if (range == 0) return Expr(base);
    for (int64_t& v : values) v -= base;
    std::string& name = names_[values];
    if (name.empty()) name = name_size_({0, range});
    for (size_t i = 0; i < values.size(); ++i) placed_.sizes[i][name] = values[i];
    return Expr(base) + loop::var(name);
  }

  /// An index by which rows reach an operand, counted from where the part begins.
  Expr in_part(const RowAccess& access, const Expr& index) {
    return loop::substitute(index, {{by_.axis, loop::var(kRow)}}) + size([&](const RowPlace& p) {
             return access.scale * p.rows.begin - p.passed.at(access.param).begin;
           });
  }

  void write(loop::DefinitionOutput& output) {
    const RowAccess& access = *access_of(by_.writes, output.buffer);
    output.indices[access.dimension] = loop::var(kRow);
    output.indices = index_in_part(kernel_.buffers[access.param].shape,
                                   placed_.kernel.buffers[access.param].shape, output.indices);
  }

  Expr read(const Expr& e) {
    const RowAccess* access = access_of(by_.reads, e->name);
    if (access == nullptr) return e;
    std::vector<Expr> indices = e->args;
    indices[access->dimension] = in_part(*access, indices[access->dimension]);
    const Dims& part = placed_.kernel.buffers[access->param].shape;
    indices = index_in_part(kernel_.buffers[access->param].shape, part, std::move(indices));
    return loop::access(e->name, e.type().scalar, std::move(indices));
  }

  /// The constant by which one index exceeds another, if it is one.
  std::optional<int64_t> difference(const Expr& a, const Expr& b) const {
    std::map<std::string, int64_t> zeros;
    for (const std::vector<Axis>* axes : {&definition_.axes, &definition_.reduce_axes}) {
      for (const Axis& axis : *axes) {
        const std::optional<int64_t> slope = coefficient(a, axis.name);
        if (!slope || slope != coefficient(b, axis.name)) return std::nullopt;
        zeros[axis.name] = 0;
      }
    }
    const std::optional<int64_t> at_a = evaluate(a, zeros), at_b = evaluate(b, zeros);
    return at_a && at_b ? std::optional<int64_t>(*at_a - *at_b) : std::nullopt;
  }

  /// A comparison of an index with the first or behind the last row there is.
  std::optional<Expr> border(const Expr& e) {
    const std::optional<int64_t> left = coefficient(e->args[0], by_.axis);
    const std::optional<int64_t> right = coefficient(e->args[1], by_.axis);
    if (!left || !right || *left == *right) return std::nullopt;
    const bool swaps = *left < *right;
    const Op op = swaps ? mirrored(e->op) : e->op;
    const Expr distance = swaps ? e->args[1] - e->args[0] : e->args[0] - e->args[1];
    for (const auto& [access, index] : indices_) {
      // distance >= 0, or > 0, where index >= least.
      const std::optional<int64_t> beyond = difference(index, distance);
      if (!beyond) continue;
      const int64_t bound = *beyond + (op == Op::gt || op == Op::le ? 1 : 0);
      if (bound != (is_lower(op) ? 0 : access->extent)) continue;
      const Expr local = in_part(*access, index);
      const size_t param = access->param;
      if (is_lower(op)) {
        return local >= size([&](const RowPlace& place) {
                 return std::max<int64_t>(-place.passed.at(param).begin, 0);
               });
      }
      return local < size([&](const RowPlace& place) {
               const Rows& passed = place.passed.at(param);
               return std::min(passed.count(), access->extent - passed.begin);
             });
    }
    return std::nullopt;
  }

  /// Whether nothing depends on rows but by what was found.
  bool all_found() const {
    bool found = true;
    const auto look = [&](const Expr& e) { found = found && !mentions(e, by_.axis); };
    for (const loop::Accumulator& acc : definition_.accumulators) look(acc.value);
    for (const loop::DefinitionOutput& output : definition_.outputs) look(output.value);
    return found;
  }

  const Kernel& kernel_;
  const RowKernel& by_;
  const std::vector<RowPlace>& places_;
  const std::function<std::string(DimRange)>& name_size_;
  Definition definition_;
  std::vector<std::pair<const RowAccess*, Expr>> indices_;
  std::map<std::vector<int64_t>, std::string> names_;  // of sizes, by their values
  PlacedKernel placed_;
};

}  // namespace

std::optional<PlacedKernel> place_rows(const Kernel& kernel, const RowKernel& by,
                                       const std::vector<RowPlace>& places,
                                       const std::set<size_t>& apart,
                                       const std::function<std::string(DimRange)>& name_size) {
  return Placing(kernel, by, places, apart, name_size).run();
}

}  // namespace backcast
