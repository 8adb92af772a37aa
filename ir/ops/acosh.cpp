// acosh: y = ln(x + √(x² - 1)), the inverse of cosh; NaN for x < 1.
#include "ir/ops/elementwise.h"
#include "ir/ops/val.h"

namespace backcast::ops {
namespace {

struct Acosh {
  double operator()(double x) const { return std::acosh(x); }
};

std::vector<Adjoint> gradient_of_acosh(GradientContext& context) {
  const Val x(context.builder, context.operand(0)), seed(context.builder, context.seed());
  return {seed / backcast::sqrt((x - 1.0) * (x + 1.0))};
}

}  // namespace

const OpDef acosh = {
    .name = "acosh",
    .documentation = "The inverse hyperbolic cosine; NaN below 1.",
    .min_operands = 1,
    .max_operands = 1,
    .default_attrs = {},
    .infer = infer_unary<kFloat>,
    .evaluate = evaluate_unary<kFloat, Acosh>,
    .gradient = gradient_of_acosh,
};

}  // namespace backcast::ops
