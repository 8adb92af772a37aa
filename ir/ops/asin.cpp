// asin: y = arcsin x in [-π/2, π/2]; NaN for |x| > 1.
#include "ir/ops/elementwise.h"
#include "ir/ops/val.h"

namespace backcast::ops {
namespace {

struct Asin {
  double operator()(double x) const { return std::asin(x); }
};

std::vector<Adjoint> gradient_of_asin(GradientContext& context) {
  const Val x(context.builder, context.operand(0)), seed(context.builder, context.seed());
  return {seed / backcast::sqrt((1.0 - x) * (1.0 + x))};
}

}  // namespace

const OpDef asin = {
    .name = "asin",
    .documentation = "The inverse sine in radians; NaN outside [-1, 1].",
    .min_operands = 1,
    .max_operands = 1,
    .default_attrs = {},
    .infer = infer_unary<kFloat>,
    .evaluate = evaluate_unary<kFloat, Asin>,
    .gradient = gradient_of_asin,
};

}  // namespace backcast::ops
