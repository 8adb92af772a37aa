// sin: y = sin x, x in radians; NaN for infinities.
#include "ir/ops/elementwise.h"
#include "ir/ops/val.h"

namespace backcast::ops {
namespace {

struct Sin {
  double operator()(double x) const { return std::sin(x); }
};

std::vector<Adjoint> gradient_of_sin(GradientContext& context) {
  const Val x(context.builder, context.operand(0)), seed(context.builder, context.seed());
  return {seed * backcast::cos(x)};
}

}  // namespace

const OpDef sin = {
    .name = "sin",
    .documentation = "The sine of an angle in radians.",
    .min_operands = 1,
    .max_operands = 1,
    .default_attrs = {},
    .infer = infer_unary<kFloat>,
    .evaluate = evaluate_unary<kFloat, Sin>,
    .gradient = gradient_of_sin,
};

}  // namespace backcast::ops
