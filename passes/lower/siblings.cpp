#include "passes/lower/siblings.h"

#include <algorithm>
#include <string>

#include "ir/loop/visit.h"
#include "passes/lower/definition_cost.h"

namespace backcast {
namespace {

using loop::Accumulator;
using loop::Axis;
using loop::BufferId;
using loop::Definition;
using loop::DefinitionOutput;
using loop::Expr;
using loop::ExprKind;

constexpr int64_t kMaxCost = 96;
constexpr size_t kMaxParams = 24;
constexpr size_t kMaxResults = 6;

std::vector<Axis> long_axes(const std::vector<Axis>& axes) {
  std::vector<Axis> result;
  for (const Axis& axis : axes) {
    if (!loop::is_constant(axis.extent, 1)) result.push_back(axis);
  }
  return result;
}

/// The axes of `of` as those of `in`, in order, axes of one element only where each has its like;
/// false when their extents differ.
bool bind_axes(const std::vector<Axis>& of, const std::vector<Axis>& in,
               std::map<std::string, Expr>& names) {
  const bool each =
      std::equal(of.begin(), of.end(), in.begin(), in.end(),
                 [](const Axis& x, const Axis& y) { return loop::equal(x.extent, y.extent); });
  const std::vector<Axis> from = each ? of : long_axes(of), to = each ? in : long_axes(in);
  if (from.size() != to.size()) return false;
  for (const Axis& axis : of) names[axis.name] = Expr(0);
  for (size_t i = 0; i < from.size(); ++i) {
    if (!loop::equal(from[i].extent, to[i].extent)) return false;
    names[from[i].name] = loop::var(to[i].name);
  }
  return true;
}

/// Definition `b` over the axes of `a`, its accumulators named apart; nothing when the axes differ.
std::optional<Definition> over_axes_of(const Definition& a, const Definition& b) {
  std::map<std::string, Expr> names;
  if (!bind_axes(b.axes, a.axes, names) || !bind_axes(b.reduce_axes, a.reduce_axes, names)) {
    return std::nullopt;
  }
  Definition result = b;
  result.axes = a.axes;
  result.reduce_axes = a.reduce_axes;
  std::set<std::string> taken;
  for (const Accumulator& acc : a.accumulators) taken.insert(acc.name);
  for (Accumulator& acc : result.accumulators) {
    std::string name = acc.name;
    for (int i = 2; !taken.insert(name).second; ++i) name = acc.name + std::to_string(i);
    names[acc.name] = loop::var(name, acc.type);
    acc.name = name;
  }
  for (Accumulator& acc : result.accumulators) acc.value = loop::substitute(acc.value, names);
  for (DefinitionOutput& output : result.outputs) {
    output.value = loop::substitute(output.value, names);
    for (Expr& index : output.indices) index = loop::substitute(index, names);
  }
  return result;
}

bool sums_plainly(const Definition& definition) {
  return std::none_of(definition.accumulators.begin(), definition.accumulators.end(),
                      [](const Accumulator& acc) { return acc.combine == loop::Combine::general; });
}

class Joining {
 public:
  explicit Joining(UnitList& list) : list_(list), program_(list.program()) {}

  void run() {
    for (size_t s = 0; s < list_.size(); ++s) {
      while (usable(s) && join_one(s)) {
      }
    }
  }

 private:
  bool usable(size_t s) const {
    if (list_.is_gone(s) || !list_.has(s)) return false;
    const Unit& unit = list_.at(s);
    if (unit.macs > 0 || !sums_plainly(unit.definition)) return false;
    if (cost(unit.definition).indirect > 0) return false;
    for (BufferId id : unit.outputs()) {
      if (list_.is_alone(id)) return false;
    }
    return true;
  }

  /// The nearest earlier unit that s can be joined with.
  bool join_one(size_t s) {
    std::set<size_t, std::greater<>> others;
    for (BufferId id : large_operands(list_.at(s).definition)) {
      for (size_t q : list_.readers(id)) {
        if (q < s && usable(q)) others.insert(q);
      }
    }
    return std::any_of(others.begin(), others.end(), [&](size_t q) { return try_join(q, s); });
  }

  /// Operands with about as many elements as the definition has points.
  std::set<BufferId> large_operands(const Definition& definition) const {
    const int64_t all = points(definition, program_.symbols);
    std::set<BufferId> result;
    for (BufferId id : operands(definition)) {
      if (all > 1 && elements(program_, id) * 2 > all) result.insert(id);
    }
    return result;
  }

  /// Whether both read a large operand at the same place.
  bool share_reads(const Definition& a, const Definition& b) const {
    const std::set<BufferId> large = large_operands(b);
    bool found = false;
    for_each_access(a, [&](const loop::ExprNode& x, bool) {
      if (found || !large.count(buffer_id(x.name))) return;
      for_each_access(b, [&](const loop::ExprNode& y, bool) {
        bool same = x.name == y.name;
        for (size_t i = 0; same && i < x.args.size(); ++i) same = loop::equal(x.args[i], y.args[i]);
        found = found || same;
      });
    });
    return found;
  }

  bool reads_results_of(const Unit& reader, const Unit& writer) const {
    const std::set<BufferId> read = list_.reads(reader);
    const std::vector<BufferId> written = writer.outputs();
    return std::ranges::any_of(written,
                               [&](BufferId id) { return read.contains(program_.owner(id)); });
  }

  bool try_join(size_t q, size_t s) {
    const Unit &first = list_.at(q), &second = list_.at(s);
    if (first.is_map() != second.is_map() || reads_results_of(second, first)) return false;
    const bool down = list_.may_move_down(q, s);
    if (!down && (first.is_map() || !list_.may_move_up(s, q))) return false;
    std::optional<Definition> moved = over_axes_of(first.definition, second.definition);
    if (!moved || !share_reads(first.definition, *moved)) return false;
    Unit joined = first;
    for (const Accumulator& acc : moved->accumulators) {
      joined.definition.accumulators.push_back(acc);
    }
    std::vector<DefinitionOutput>& outputs = joined.definition.outputs;
    outputs.insert(outputs.end(), moved->outputs.begin(), moved->outputs.end());
    const bool state = list_.becomes_state(buffer_id(outputs[0].buffer));
    const bool alike =
        std::all_of(outputs.begin(), outputs.end(), [&](const DefinitionOutput& output) {
          return lie_alike(program_, output, outputs[0]) &&
                 list_.becomes_state(buffer_id(output.buffer)) == state;
        });
    if (!alike || !has_one_type(program_, joined.definition) || outputs.size() > kMaxResults ||
        params(joined.definition) > kMaxParams || cost(joined.definition).total() > kMaxCost) {
      return false;
    }
    adopt(joined, second);
    list_.replace(down ? s : q, down ? q : s, std::move(joined));
    return true;
  }

  UnitList& list_;
  const loop::Program& program_;
};

}  // namespace

void join_siblings(UnitList& list) { Joining(list).run(); }

}  // namespace backcast
