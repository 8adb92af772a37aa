#include "passes/graph/round_parts.h"

#include <optional>
#include <vector>

#include "ir/graph/builder.h"
#include "ir/ops/ops.h"
#include "passes/graph/algebra.h"
#include "passes/lower/rule_table.h"

namespace backcast {
namespace {

class RoundingParts {
 public:
  RoundingParts(const Module& module, const Function& from)
      : from_(from), uses_(use_counts(from)), rewriter_(module, from), b_(rewriter_.builder()) {}

  Function run() {
    for (int64_t i = 0; i < from_.size(); ++i) {
      const ValueId id(i);
      if (!is_rounded(from_.node(id))) continue;
      chain_.clear();
      const ValueId joined = beginning(id);
      if (joined != id && leads_to_parts(joined)) rewriter_.map(id, rounded(joined));
    }
    return rewriter_.finish();
  }

 private:
  bool is_used_once(ValueId id) const { return uses_[static_cast<size_t>(id.index)] == 1; }

  /// A conversion to integers of fewer bits.
  bool is_rounded(const Node& node) const {
    if (node.op != &ops::cast) return false;
    const ElementType to = node.type.tensor().element;
    const ElementType element = from_.type(node.operands[0]).tensor().element;
    return is_integer(to) && byte_size(to) < byte_size(element);
  }

  /// The only operand of an elementwise node that is not the same number everywhere.
  std::optional<size_t> varying(const Node& node) const {
    std::optional<size_t> found;
    for (size_t i = 0; i < node.operands.size(); ++i) {
      if (splat_of(from_, node.operands[i])) continue;
      if (found) return std::nullopt;
      found = i;
    }
    return found;
  }

  /// Where the elementwise nodes begin that lead to `id` and nowhere else; they go into `chain_`,
  /// the last one first.
  ValueId beginning(ValueId id) {
    while (is_elementwise(*from_.node(id).op)) {
      const std::optional<size_t> operand = varying(from_.node(id));
      if (!operand) break;
      chain_.push_back({id, *operand});
      id = from_.node(id).operands[*operand];
      if (!is_used_once(id)) break;
    }
    return id;
  }

  bool is_moved(const Node& node) const {
    return node.op == &ops::reshape || node.op == &ops::transpose;
  }

  bool leads_to_parts(ValueId id) const {
    while (is_used_once(id) && is_moved(from_.node(id))) id = from_.node(id).operands[0];
    return is_used_once(id) && from_.node(id).op == &ops::concat;
  }

  /// The chain's result for a value in the place of what it begins with.
  ValueId rounded(ValueId id) {
    const Node& node = from_.node(id);
    std::vector<ValueId> operands;
    if (is_used_once(id) && (is_moved(node) || node.op == &ops::concat)) {
      for (const ValueId operand : node.operands) operands.push_back(rounded(operand));
      b_.set_loc(node.loc);
      return b_.emit(*node.op, operands, node.attrs);
    }
    ValueId value = rewriter_.copy_all(id);
    for (auto link = chain_.rbegin(); link != chain_.rend(); ++link) value = replay(*link, value);
    return value;
  }

  struct Link {
    ValueId node;
    size_t operand;
  };

  ValueId replay(const Link& link, ValueId value) {
    const Node& node = from_.node(link.node);
    b_.set_loc(node.loc);
    const Shape shape = b_.tensor_type(value).shape;
    std::vector<ValueId> operands;
    for (size_t i = 0; i < node.operands.size(); ++i) {
      const TensorType& type = from_.type(node.operands[i]).tensor();
      ValueId operand = value;
      if (i != link.operand) operand = b_.scalar(type.element, *splat_of(from_, node.operands[i]));
      if (i != link.operand && type.rank() > 0) {
        operand = b_.emit(ops::broadcast, {operand}, BroadcastAttrs{shape, {}});
      }
      operands.push_back(operand);
    }
    return b_.emit(*node.op, operands, node.attrs);
  }

  const Function& from_;
  const std::vector<int> uses_;
  Rewriter rewriter_;
  Builder& b_;
  std::vector<Link> chain_;
};

}  // namespace

Module round_parts(const Module& module) {
  Module result = module;
  for (auto& [name, function] : result.functions) function = RoundingParts(module, function).run();
  return result;
}

}  // namespace backcast
