// asinh: y = ln(x + √(x² + 1)), the inverse of sinh.
#include "ir/ops/elementwise.h"
#include "ir/ops/val.h"

namespace backcast::ops {
namespace {

struct Asinh {
  double operator()(double x) const { return std::asinh(x); }
};

std::vector<Adjoint> gradient_of_asinh(GradientContext& context) {
  const Val x(context.builder, context.operand(0)), seed(context.builder, context.seed());
  return {seed / backcast::sqrt(x * x + 1.0)};
}

}  // namespace

const OpDef asinh = {
    .name = "asinh",
    .documentation = "The inverse hyperbolic sine.",
    .min_operands = 1,
    .max_operands = 1,
    .default_attrs = {},
    .infer = infer_unary<kFloat>,
    .evaluate = evaluate_unary<kFloat, Asinh>,
    .gradient = gradient_of_asinh,
};

}  // namespace backcast::ops
