// sinh: y = (eˣ - e⁻ˣ) / 2.
#include "ir/ops/elementwise.h"
#include "ir/ops/val.h"

namespace backcast::ops {
namespace {

struct Sinh {
  double operator()(double x) const { return std::sinh(x); }
};

std::vector<Adjoint> gradient_of_sinh(GradientContext& context) {
  const Val x(context.builder, context.operand(0)), seed(context.builder, context.seed());
  return {seed * backcast::cosh(x)};
}

}  // namespace

const OpDef sinh = {
    .name = "sinh",
    .documentation = "The hyperbolic sine.",
    .min_operands = 1,
    .max_operands = 1,
    .default_attrs = {},
    .infer = infer_unary<kFloat>,
    .evaluate = evaluate_unary<kFloat, Sinh>,
    .gradient = gradient_of_sinh,
};

}  // namespace backcast::ops
