// cosh: y = (eˣ + e⁻ˣ) / 2.
#include "ir/ops/elementwise.h"
#include "ir/ops/val.h"

namespace backcast::ops {
namespace {

struct Cosh {
  double operator()(double x) const { return std::cosh(x); }
};

std::vector<Adjoint> gradient_of_cosh(GradientContext& context) {
  const Val x(context.builder, context.operand(0)), seed(context.builder, context.seed());
  return {seed * backcast::sinh(x)};
}

}  // namespace

const OpDef cosh = {
    .name = "cosh",
    .documentation = "The hyperbolic cosine.",
    .min_operands = 1,
    .max_operands = 1,
    .default_attrs = {},
    .infer = infer_unary<kFloat>,
    .evaluate = evaluate_unary<kFloat, Cosh>,
    .gradient = gradient_of_cosh,
};

}  // namespace backcast::ops
