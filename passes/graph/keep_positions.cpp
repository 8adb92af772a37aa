#include "passes/graph/keep_positions.h"

#include <map>
#include <optional>

#include "ir/graph/builder.h"
#include "ir/ops/ops.h"
#include "ir/ops/val.h"
#include "ir/ops/window_attrs.h"

namespace backcast {
namespace {

class Keeping {
 public:
  Keeping(const Module& module, const Function& from) : from_(from), rewriter_(module, from) {}

  Function run() {
    std::multimap<int64_t, ValueId> positions;  // by the operand's number
    for (int64_t i = 0; i < from_.size(); ++i) {
      const Node& node = from_.node(ValueId(i));
      if (node.op == &ops::arg_window) positions.emplace(node.operands[0].index, ValueId(i));
      if (node.op == &ops::reduce_window) pools_.emplace(node.operands[0].index, ValueId(i));
    }
    for (int64_t i = 0; i < from_.size(); ++i) {
      const ValueId id(i);
      if (!rewriter_.mapped(id) && !move_mask(id)) rewriter_.copy(id);
      const auto [begin, end] = positions.equal_range(i);
      for (auto it = begin; it != end; ++it) rewriter_.copy(it->second);
    }
    return rewriter_.finish();
  }

 private:
  bool is_zero(ValueId id) const {
    const Node* node = &from_.node(id);
    while (node->op == &ops::broadcast || node->op == &ops::reshape ||
           node->op == &ops::transpose) {
      node = &from_.node(node->operands[0]);
    }
    return node->op == &ops::constant && node->attrs.as<ConstantAttrs>().value.is_splat(0);
  }

  /// The values (maxima or minima) whose places `positions` are.
  std::optional<ValueId> pooled(const Node& positions) const {
    const auto [begin, end] = pools_.equal_range(positions.operands[0].index);
    for (auto it = begin; it != end; ++it) {
      const bool known = rewriter_.mapped(it->second);
      if (known && from_.node(it->second).attrs == positions.attrs) return it->second;
    }
    return std::nullopt;
  }

  /// Whether the node was the mask of a rectifier over a pooling's gradient.
  bool move_mask(ValueId id) {
    const Node& node = from_.node(id);
    if (node.op != &ops::select || !is_zero(node.operands[2])) return false;
    const Node& condition = from_.node(node.operands[0]);
    const Node& scatter = from_.node(node.operands[1]);
    if (condition.op != &ops::compare || scatter.op != &ops::scatter_window) return false;
    const Node& positions = from_.node(scatter.operands[1]);
    if (condition.attrs.as<CompareAttrs>().direction != Comparison::gt ||
        !is_zero(condition.operands[1]) || positions.op != &ops::arg_window ||
        !(positions.operands[0] == condition.operands[0])) {
      return false;
    }
    const std::optional<ValueId> pool = pooled(positions);
    if (!pool) return false;
    Builder& builder = rewriter_.builder();
    builder.set_loc(node.loc);
    const Val chosen(builder, rewriter_[*pool]), values(builder, rewriter_[scatter.operands[0]]);
    const Val masked = select(compare(chosen, Comparison::gt, 0.0), values, zeros_like(values));
    rewriter_.map(
        id, masked.emit(ops::scatter_window, {rewriter_[scatter.operands[1]]}, scatter.attrs));
    return true;
  }

  const Function& from_;
  Rewriter rewriter_;
  std::multimap<int64_t, ValueId> pools_;
};

}  // namespace

Module keep_positions(const Module& module) {
  Module result = module;
  for (auto& [name, function] : result.functions) function = Keeping(module, function).run();
  return result;
}

}  // namespace backcast
