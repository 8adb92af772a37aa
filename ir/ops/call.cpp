// call: a function of the module applied to the operands.
#include "ir/graph/module.h"
#include "ir/ops/call_rules.h"
#include "ir/ops/ops.h"

namespace backcast::ops {
namespace {

Type infer_call(const InferContext& context) {
  return infer_application(context, context.attrs.as<CallAttrs>().function);
}

Value evaluate_call(const EvalContext& context) {
  return evaluate_application(context, context.node.attrs.as<CallAttrs>().function);
}

std::vector<Adjoint> gradient_of_call(GradientContext& context) {
  return gradient_of_application(context, context.node.attrs.as<CallAttrs>().function);
}

}  // namespace

const OpDef call = {
    .name = "call",
    .documentation = "A function of the module applied to the operands.",
    .min_operands = 0,
    .max_operands = -1,
    .default_attrs = CallAttrs{},
    .infer = infer_call,
    .evaluate = evaluate_call,
    .gradient = gradient_of_call,
};

}  // namespace backcast::ops
