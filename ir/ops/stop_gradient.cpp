// stop_gradient: the operand, through which no derivative passes.
#include "ir/ops/elementwise.h"

namespace backcast::ops {
namespace {

Value evaluate_stop_gradient(const EvalContext& context) { return context.tensor(0); }

}  // namespace

const OpDef stop_gradient = {
    .name = "stop_gradient",
    .documentation = "The operand itself; differentiation takes it for a constant.",
    .min_operands = 1,
    .max_operands = 1,
    .default_attrs = {},
    .infer = infer_unary<kAny>,
    .evaluate = evaluate_stop_gradient,
    .gradient = zero_gradient("asked for"),
};

}  // namespace backcast::ops
