// tuple: its operands, tensors or tuples, as one value.
#include "ir/ops/ops.h"

namespace backcast::ops {
namespace {

Type infer_tuple(const InferContext& context) {
  return Type::tuple({context.operands.begin(), context.operands.end()});
}

Value evaluate_tuple(const EvalContext& context) {
  return Value::make_tuple({context.operands.begin(), context.operands.end()});
}

std::vector<Adjoint> gradient_of_tuple(GradientContext& context) {
  return context.cotangent.elements;
}

}  // namespace

const OpDef tuple = {
    .name = "tuple",
    .documentation = "The operands, tensors or tuples, as one value.",
    .min_operands = 0,
    .max_operands = -1,
    .default_attrs = {},
    .infer = infer_tuple,
    .evaluate = evaluate_tuple,
    .gradient = gradient_of_tuple,
};

}  // namespace backcast::ops
