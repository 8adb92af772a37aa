// get: one element of a tuple.
#include "ir/graph/builder.h"
#include "ir/ops/ops.h"
#include "ir/ops/shape_rules.h"

namespace backcast::ops {
namespace {

Type infer_get(const InferContext& context) {
  const int64_t index = context.attrs.as<GetAttrs>().index;
  const Type& type = context.operands[0];
  if (!type.is_tuple()) fail("operand 0 must be a tuple and is {}", type.to_string());
  const int64_t size = static_cast<int64_t>(type.elements().size());
  if (index < 0 || index >= size) {
    fail("there is no element {} in {}, which has {}", index, type.to_string(), size);
  }
  return type.elements()[static_cast<size_t>(index)];
}

Value evaluate_get(const EvalContext& context) {
  const int64_t index = context.node.attrs.as<GetAttrs>().index;
  return context.operands[0].elements.at(static_cast<size_t>(index));
}

std::vector<Adjoint> gradient_of_get(GradientContext& context) {
  const std::vector<Type>& elements = context.builder.type(context.operand(0)).elements();
  std::vector<Adjoint> parts(elements.size());
  parts[static_cast<size_t>(context.node.attrs.as<GetAttrs>().index)] = context.cotangent;
  return {Adjoint::tuple(std::move(parts))};
}

}  // namespace

const OpDef get = {
    .name = "get",
    .documentation = "Element `index` of a tuple.",
    .min_operands = 1,
    .max_operands = 1,
    .default_attrs = GetAttrs{},
    .infer = infer_get,
    .evaluate = evaluate_get,
    .gradient = gradient_of_get,
};

}  // namespace backcast::ops
