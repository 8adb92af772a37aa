// constant: a tensor that is part of the model.
#include "ir/ops/ops.h"
#include "ir/ops/shape_rules.h"

namespace backcast::ops {
namespace {

Type infer_constant(const InferContext& context) {
  const Literal& value = context.attrs.as<ConstantAttrs>().value;
  // A literal that nobody has filled is a scalar without bytes.
  if (value.shape().empty() && value.bytes().empty()) fail("the constant has no value");
  return value.type();
}

Value evaluate_constant(const EvalContext& context) {
  return context.node.attrs.as<ConstantAttrs>().value;
}

}  // namespace

const OpDef constant = {
    .name = "constant",
    .documentation = "A tensor that is part of the model.",
    .min_operands = 0,
    .max_operands = 0,
    .default_attrs = ConstantAttrs{},
    .infer = infer_constant,
    .evaluate = evaluate_constant,
    .gradient = zero_gradient("no operands"),
};

}  // namespace backcast::ops
