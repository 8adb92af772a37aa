#include "passes/graph/tabulate.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "ir/graph/builder.h"
#include "ir/graph/evaluator.h"
#include "ir/loop/byte_tables.h"
#include "ir/ops/ops.h"
#include "passes/graph/algebra.h"
#include "passes/graph/simplify.h"
#include "passes/graph/value_ranges.h"
#include "passes/lower/rule_table.h"

namespace backcast {
namespace {

using loop::kBytes;

// Tensors of fewer elements are not worth a table.
constexpr int64_t kFewestElements = kBytes;

/// Fewer operations than these are not worth a table: per element of a vector, measured.
int64_t fewest_operations(const TargetInfo& target) {
  if (target.vector_bits == 0) return 3;
  return target.byte_tables ? 6 : 8;
}

class Tabulation {
 public:
  Tabulation(const Module& module, const Function& from, int64_t fewest_operations)
      : module_(module),
        from_(from),
        fewest_operations_(fewest_operations),
        ranges_(module, from),
        rewriter_(module, from),
        b_(rewriter_.builder()),
        sources_(static_cast<size_t>(from.size())) {}

  Function run() {
    for (int64_t i = 0; i < from_.size(); ++i) {
      const ValueId id(i);
      sources_[static_cast<size_t>(i)] = source_of(id);
      if (is_worth_a_table(id)) rewriter_.map(id, looked_up(id));
    }
    return rewriter_.finish();
  }

 private:
  ValueId source(ValueId id) const { return sources_[static_cast<size_t>(id.index)]; }
  bool is_splat(ValueId id) const { return splat_of(from_, id).has_value(); }

  /// The small integers that each element is a function of; invalid where there are none.
  ValueId source_of(ValueId id) const {
    const Node& node = from_.node(id);
    if (!node.type.is_tensor()) return ValueId();
    if (is_elementwise(*node.op)) {
      ValueId common;
      bool same = true;
      for (const ValueId operand : node.operands) {
        if (is_splat(operand)) continue;
        same = same && source(operand).valid() && (!common.valid() || source(operand) == common);
        common = source(operand);
      }
      if (same && common.valid()) return common;
    }
    return is_small(id) ? id : ValueId();
  }

  /// Integers of at most 16 bits in a range that bytes tell apart.
  bool is_small(ValueId id) const {
    const TensorType& type = from_.type(id).tensor();
    if (!is_integer(type.element) || byte_size(type.element) > 2) return false;
    const ValueRange range = ranges_[id];
    return range.high - range.low < kBytes;
  }

  bool is_worth_a_table(ValueId id) const {
    const Node& node = from_.node(id);
    if (!source(id).valid() || source(id) == id || node.op != &ops::cast) return false;
    const TensorType& type = node.type.tensor();
    if (!is_integer(type.element) || byte_size(type.element) > 2) return false;
    if (type.element_count().range(module_.symbols).max < kFewestElements) return false;
    std::set<int64_t> operations;
    collect_operations(id, operations);
    int64_t count = 0;
    for (const int64_t operation : operations)
      count += elementwise_cost(from_, from_.node(ValueId(operation)));
    return count >= fewest_operations_;
  }

  /// Between a value and its source, all but conversions and clipping.
  void collect_operations(ValueId id, std::set<int64_t>& operations) const {
    if (is_splat(id) || is_source(id)) return;
    const Node& node = from_.node(id);
    if (node.op != &ops::cast && node.op != &ops::clamp && !operations.insert(id.index).second) {
      return;
    }
    for (const ValueId operand : node.operands) collect_operations(operand, operations);
  }

  bool is_source(ValueId id) const { return source(id) == id; }

  ValueId looked_up(ValueId id) {
    const ValueId from = source(id);
    const ValueRange range = ranges_[from];
    const ValueId x = rewriter_.copy_all(from);
    b_.set_loc(from_.node(id).loc);
    const Literal values = table(id, from, range);
    const TensorType& type = from_.type(from).tensor();
    ValueId place = b_.emit(ops::cast, {x}, CastAttrs{ElementType::i32});
    if (range.low != 0) {
      const ValueId low = b_.scalar(ElementType::i32, range.low);
      place = b_.emit(ops::sub,
                      {place, b_.emit(ops::broadcast, {low}, BroadcastAttrs{type.shape, {}})});
    }
    place = b_.emit(ops::cast, {place}, CastAttrs{ElementType::u8});
    GatherAttrs attrs;
    attrs.collapsed_slice_dims = {0};
    attrs.start_index_map = {0};
    attrs.index_vector_dim = type.rank();
    attrs.slice_sizes = {Dim(1)};
    return b_.emit(ops::gather, {b_.constant(values), place}, attrs);
  }

  Literal table(ValueId id, ValueId from, const ValueRange& range) const {
    std::vector<double> places(kBytes);
    for (size_t i = 0; i < places.size(); ++i) {
      places[i] = std::min(range.low + static_cast<double>(i), range.high);
    }
    std::map<int64_t, Literal> known;
    known[from.index] = Literal::from_doubles(from_.type(from).tensor().element, {kBytes}, places);
    return evaluated(id, known);
  }

  Literal evaluated(ValueId id, std::map<int64_t, Literal>& known) const {
    if (const auto found = known.find(id.index); found != known.end()) return found->second;
    Node node = from_.node(id);
    Literal result;
    if (const std::optional<double> splat = splat_of(from_, id)) {
      const TensorType& type = node.type.tensor();
      result = type.rank() == 0 ? Literal::scalar(type.element, *splat)
                                : Literal::from_doubles(type.element, {kBytes},
                                                        std::vector<double>(kBytes, *splat));
    } else {
      std::vector<Value> operands;
      std::vector<Type> types;
      for (const ValueId operand : node.operands) {
        operands.push_back(evaluated(operand, known));
        types.push_back(operands.back().tensor.type());
      }
      node.type = node.op->infer({module_, types, node.attrs});
      result = evaluate_node(module_, node, operands).tensor;
    }
    return known.emplace(id.index, result).first->second;
  }

  const Module& module_;
  const Function& from_;
  int64_t fewest_operations_;
  ValueRanges ranges_;
  Rewriter rewriter_;
  Builder& b_;
  std::vector<ValueId> sources_;  // by value number
};

bool has_small_integers(const Function& function) {
  return std::any_of(function.nodes.begin(), function.nodes.end(), [](const Node& node) {
    return node.op == &ops::cast && node.type.is_tensor() &&
           is_integer(node.type.tensor().element) && byte_size(node.type.tensor().element) <= 2;
  });
}

}  // namespace

Module tabulate(const Module& module, const TargetInfo& target) {
  Module result = module;
  bool any = false;
  for (auto& [name, function] : result.functions) {
    if (!has_small_integers(function)) continue;
    const Function from = function;
    function = Tabulation(module, from, fewest_operations(target)).run();
    any = any || !equal(function, from);
  }
  return any ? simplify(result) : result;  // without the tables on the way to others
}

}  // namespace backcast
