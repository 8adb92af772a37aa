#include "passes/graph/scaled_integers.h"

#include "ir/ops/ops.h"
#include "passes/graph/constant_value.h"

namespace backcast {

bool is_integer_type(const Type& type) {
  return type.is_tensor() && is_integer(type.tensor().element) &&
         byte_size(type.tensor().element) <= 4 && type.tensor().element != ElementType::u32;
}

std::optional<ScaledInteger> scaled_integer(const Function& function, ValueId id) {
  const Node& node = function.node(id);
  if (node.op == &ops::cast) {
    const Node& inner = function.node(node.operands[0]);
    if (is_integer_type(inner.type)) return ScaledInteger{node.operands[0], std::nullopt};
    if (inner.type == node.type) return scaled_integer(function, node.operands[0]);
    return std::nullopt;
  }
  if (node.op != &ops::mul) return std::nullopt;
  for (const size_t side : {0u, 1u}) {
    const Node& scale = function.node(node.operands[side]);
    if (scale.op != &ops::broadcast) continue;
    if (!is_made_of_constants(function, scale.operands[0])) continue;
    std::optional<ScaledInteger> inner = scaled_integer(function, node.operands[1 - side]);
    if (!inner || inner->scale) continue;
    inner->scale = node.operands[side];
    return inner;
  }
  return std::nullopt;
}

}  // namespace backcast
