// atanh: y = ln((1 + x) / (1 - x)) / 2, the inverse of tanh; ±inf for ±1, NaN for |x| > 1.
#include "ir/ops/elementwise.h"
#include "ir/ops/val.h"

namespace backcast::ops {
namespace {

struct Atanh {
  double operator()(double x) const { return std::atanh(x); }
};

std::vector<Adjoint> gradient_of_atanh(GradientContext& context) {
  const Val x(context.builder, context.operand(0)), seed(context.builder, context.seed());
  return {seed / ((1.0 - x) * (1.0 + x))};
}

}  // namespace

const OpDef atanh = {
    .name = "atanh",
    .documentation = "The inverse hyperbolic tangent; NaN outside [-1, 1].",
    .min_operands = 1,
    .max_operands = 1,
    .default_attrs = {},
    .infer = infer_unary<kFloat>,
    .evaluate = evaluate_unary<kFloat, Atanh>,
    .gradient = gradient_of_atanh,
};

}  // namespace backcast::ops
