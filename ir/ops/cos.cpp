// cos: y = cos x, x in radians; NaN for infinities.
#include "ir/ops/elementwise.h"
#include "ir/ops/val.h"

namespace backcast::ops {
namespace {

struct Cos {
  double operator()(double x) const { return std::cos(x); }
};

std::vector<Adjoint> gradient_of_cos(GradientContext& context) {
  const Val x(context.builder, context.operand(0)), seed(context.builder, context.seed());
  return {-(seed * backcast::sin(x))};
}

}  // namespace

const OpDef cos = {
    .name = "cos",
    .documentation = "The cosine of an angle in radians.",
    .min_operands = 1,
    .max_operands = 1,
    .default_attrs = {},
    .infer = infer_unary<kFloat>,
    .evaluate = evaluate_unary<kFloat, Cos>,
    .gradient = gradient_of_cos,
};

}  // namespace backcast::ops
