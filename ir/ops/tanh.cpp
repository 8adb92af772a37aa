// tanh: y = (eˣ - e⁻ˣ) / (eˣ + e⁻ˣ).
#include "ir/ops/elementwise.h"
#include "ir/ops/val.h"

namespace backcast::ops {
namespace {

struct Tanh {
  double operator()(double x) const { return std::tanh(x); }
};

std::vector<Adjoint> gradient_of_tanh(GradientContext& context) {
  const Val y(context.builder, context.result), seed(context.builder, context.seed());
  return {seed * (1.0 - y * y)};
}

}  // namespace

const OpDef tanh = {
    .name = "tanh",
    .documentation = "The hyperbolic tangent.",
    .min_operands = 1,
    .max_operands = 1,
    .default_attrs = {},
    .infer = infer_unary<kFloat>,
    .evaluate = evaluate_unary<kFloat, Tanh>,
    .gradient = gradient_of_tanh,
};

}  // namespace backcast::ops
