#include "passes/graph/lift_rows.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "ir/ops/ops.h"
#include "ir/ops/scan_layout.h"
#include "passes/graph/algebra.h"
#include "passes/graph/rebuild_scan.h"

namespace backcast {
namespace {

/// Of a product's rows for all trips: more would lie beyond all caches.
constexpr int64_t kMostBytes = int64_t{4} << 20;

bool is_constant_int(const Function& function, ValueId id, int64_t value) {
  const Literal* constant = constant_of(function, id);
  return constant && constant->element_count() == 1 && is_integer(constant->element()) &&
         constant->as_int(0) == value;
}

/// A scan that runs in full, and keeps nothing for a derivative.
class Lifting {
 public:
  Lifting(const Module& module, const Function& function, const Node& scan, bool products)
      : function_(function),
        scan_(scan),
        attrs_(scan.attrs.as<ScanAttrs>()),
        layout_(ops::scan_layout(scan)),
        body_(module.function(attrs_.body.name)),
        products_(products) {}

  /// Whether there is something to lift. `taken`: the results that are used.
  bool find(const std::set<int64_t>& taken) {
    const auto is_x = [&](int64_t param) {
      return param >= layout_.carries && param < layout_.carries + layout_.xs;
    };
    for (int64_t p = 0; p < static_cast<int64_t>(body_.params.size()); ++p) {
      const ValueId id = body_.params[static_cast<size_t>(p)];
      params_[id.index] = p;
      if (is_x(p)) rows_.insert(id.index);
      if (p < layout_.carries && counts(p)) numbers_.insert(id.index);
    }
    for (int64_t i = 0; i < body_.size(); ++i) visit(ValueId(i));
    find_dropped(taken);
    return !lifted_.empty() || !dropped_.empty();
  }

  /// `operands`: of the scan, in `b`.
  ScanChange change(Builder& b, const std::vector<ValueId>& operands) const {
    ScanChange change;
    change.dropped_carries = dropped_;
    std::map<int32_t, ValueId> outside;
    for (const ValueId id : lifted_) change.read.push_back({id, rows(b, operands, id, outside)});
    return change;
  }

 private:
  /// Whether a carry is the number of the trip.
  bool counts(int64_t carry) const {
    const ValueId param = body_.params[static_cast<size_t>(carry)];
    const ValueId start = scan_.operands[static_cast<size_t>(carry + 1)];
    if (attrs_.reverse || !is_constant_int(function_, start, 0)) return false;
    const Node& next = body_.node((*results_of(body_))[static_cast<size_t>(carry)]);
    return next.op == &ops::add && next.operands[0] == param &&
           is_constant_int(body_, next.operands[1], 1);
  }

  bool is_number(ValueId id) const { return numbers_.contains(id.index); }

  void visit(ValueId id) {
    const Node& node = body_.node(id);
    if (node.op == &ops::cast || node.op == &ops::reshape) {
      const bool whole = node.op == &ops::reshape || is_integer(node.type.tensor().element);
      if (whole && is_number(node.operands[0])) numbers_.insert(id.index);
    }
    // Of numbers below zero, which count from the end, there are none.
    if (node.op == &ops::select && is_number(node.operands[2])) {
      const Node& below = body_.node(node.operands[0]);
      const bool never = below.op == &ops::compare && is_number(below.operands[0]) &&
                         below.attrs.as<CompareAttrs>().direction == Comparison::lt &&
                         is_constant_int(body_, below.operands[1], 0);
      if (never) numbers_.insert(id.index);
    }
    if (!is_lookup(node) && !(products_ && is_product(node))) return;
    rows_.insert(id.index);
    lifted_.push_back(id);
  }

  bool is_invariant(ValueId id) const {
    const auto param = params_.find(id.index);
    return param != params_.end() && param->second >= layout_.carries + layout_.xs;
  }

  /// The row of an invariant that has the trip's number.
  bool is_lookup(const Node& node) const {
    if (node.op != &ops::gather || !is_invariant(node.operands[0])) return false;
    const TensorType& table = body_.type(node.operands[0]).tensor();
    const TensorType& index = body_.type(node.operands[1]).tensor();
    const GatherAttrs& attrs = node.attrs.as<GatherAttrs>();
    Shape row = table.shape;
    row.erase(row.begin());
    return is_number(node.operands[1]) && index.element_count() == Dim(1) &&
           attrs.start_index_map == Ints{0} && attrs.collapsed_slice_dims == Ints{0} &&
           attrs.operand_batching_dims.empty() && node.type.tensor().shape == row &&
           is_long_enough(table.shape[0]);
  }

  bool is_long_enough(const Dim& extent) const {
    return extent.is_constant() && extent.constant() >= attrs_.length.constant();
  }

  /// Of a row and what every trip has.
  bool is_product(const Node& node) const {
    if (node.op != &ops::dot_general || !rows_.contains(node.operands[0].index) ||
        !is_static(node.type.tensor().shape)) {
      return false;
    }
    const DotGeneralAttrs& attrs = node.attrs.as<DotGeneralAttrs>();
    const ValueId weights = node.operands[1];
    const int64_t all = bytes_of(node.type.tensor()) * attrs_.length.constant();
    return attrs.lhs_batch.empty() && all <= kMostBytes &&
           (is_invariant(weights) || constant_of(body_, weights));
  }

  /// What is not taken and only leads to itself.
  void find_dropped(const std::set<int64_t>& taken) {
    const std::vector<ValueId>& results = *results_of(body_);
    std::set<int64_t> kept;
    for (int64_t c = 0; c < layout_.carries; ++c) {
      if (taken.contains(c)) kept.insert(c);
    }
    std::set<int32_t> read;
    for (const ValueId id : lifted_) read.insert(id.index);
    for (size_t before = kept.size() + 1; before != kept.size();) {
      before = kept.size();
      std::vector<ValueId> roots(results.begin() + layout_.carries, results.end());
      for (const int64_t c : kept) roots.push_back(results[static_cast<size_t>(c)]);
      const std::vector<char> needed = reached(body_, roots, read);
      for (int64_t c = 0; c < layout_.carries; ++c) {
        const ValueId param = body_.params[static_cast<size_t>(c)];
        if (needed[static_cast<size_t>(param.index)]) kept.insert(c);
      }
    }
    for (int64_t c = 0; c < layout_.carries; ++c) {
      if (!kept.contains(c)) dropped_.insert(c);
    }
  }

  /// The rows of all trips.
  ValueId rows(Builder& b, const std::vector<ValueId>& operands, ValueId id,
               std::map<int32_t, ValueId>& outside) const {
    if (const auto known = outside.find(id.index); known != outside.end()) return known->second;
    const Node& node = body_.node(id);
    ValueId result;
    if (is_parameter(node)) {
      result = operands[static_cast<size_t>(params_.at(id.index) + 1)];
    } else if (node.op == &ops::gather) {
      result = first_rows(b, operands[static_cast<size_t>(params_.at(node.operands[0].index) + 1)]);
    } else {
      const ValueId x = rows(b, operands, node.operands[0], outside);
      const Literal* constant = constant_of(body_, node.operands[1]);
      const ValueId weights =
          constant ? b.constant(*constant)
                   : operands[static_cast<size_t>(params_.at(node.operands[1].index) + 1)];
      DotGeneralAttrs attrs = node.attrs.as<DotGeneralAttrs>();
      for (int64_t& axis : attrs.lhs_contract) ++axis;
      result = b.emit(ops::dot_general, {x, weights}, attrs);
    }
    outside[id.index] = result;
    return result;
  }

  ValueId first_rows(Builder& b, ValueId table) const {
    const Shape shape = b.tensor_type(table).shape;
    if (shape[0] == attrs_.length) return table;
    SliceAttrs attrs{Dims(shape.size(), Dim(0)), shape, Ints(shape.size(), 1)};
    attrs.limit[0] = attrs_.length;
    return b.emit(ops::slice, {table}, attrs);
  }

  const Function& function_;
  const Node& scan_;
  const ScanAttrs& attrs_;
  const ops::ScanLayout layout_;
  const Function& body_;
  const bool products_;
  std::map<int32_t, int64_t> params_;  // numbers of the body's parameters
  std::set<int32_t> numbers_, rows_;   // values that are the trip's number, and rows of it
  std::vector<ValueId> lifted_;
  std::set<int64_t> dropped_;
};

class Pass {
 public:
  Pass(const Module& module, bool products) : result_(module), products_(products) {}

  Module run() {
    std::vector<std::string> names;
    for (const auto& [name, function] : result_.functions) names.push_back(name);
    for (const std::string& name : names) change(name);
    remove_unused(result_, replaced_);
    return std::move(result_);
  }

 private:
  static bool can_be_rebuilt(const Module& module, const Function& from, const Node& node) {
    if (node.op != &ops::scan) return false;
    const ScanAttrs& attrs = node.attrs.as<ScanAttrs>();
    return !attrs.trajectory && attrs.segments == 1 && runs_in_full(from, node) &&
           attrs.length.constant() > 1 && results_of(module.function(attrs.body.name));
  }

  void change(const std::string& name) {
    const Function from = result_.function(name);
    Rewriter rewriter(result_, from);
    std::map<int32_t, RebuiltScan> rebuilt;
    for (int64_t i = 0; i < from.size(); ++i) {
      const Node& node = from.node(ValueId(i));
      if (can_be_rebuilt(result_, from, node)) {
        const std::optional<std::set<int64_t>> taken = results_taken(from, ValueId(i));
        Lifting lifting(result_, from, node, products_);
        if (taken && lifting.find(*taken)) {
          std::vector<ValueId> operands;
          for (const ValueId operand : node.operands) operands.push_back(rewriter[operand]);
          Builder& b = rewriter.builder();
          b.set_loc(node.loc);
          const ScanChange change = lifting.change(b, operands);
          rebuilt[static_cast<int32_t>(i)] = rebuild_scan(result_, b, node, operands, change);
          replaced_.insert(node.attrs.as<ScanAttrs>().body.name);
          continue;
        }
      }
      const auto scan = node.op == &ops::get ? rebuilt.find(node.operands[0].index) : rebuilt.end();
      if (scan == rebuilt.end()) {
        rewriter.copy(ValueId(i));
        continue;
      }
      const auto old = static_cast<size_t>(node.attrs.as<GetAttrs>().index);
      rewriter.builder().set_loc(node.loc);
      rewriter.map(ValueId(i), rewriter.builder().emit(ops::get, {scan->second.node},
                                                       GetAttrs{scan->second.results[old]}));
    }
    if (!rebuilt.empty()) result_.functions[name] = rewriter.finish();
  }

  Module result_;
  const bool products_;
  std::set<std::string> replaced_;
};

}  // namespace

Module lift_rows(const Module& module, bool products) { return Pass(module, products).run(); }

}  // namespace backcast
