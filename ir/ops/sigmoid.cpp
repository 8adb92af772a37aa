// sigmoid: y = 1 / (1 + e⁻ˣ). For large negative x the exponential overflows to infinity and y is
// 0.
#include "ir/ops/elementwise.h"
#include "ir/ops/val.h"

namespace backcast::ops {
namespace {

struct Sigmoid {
  double operator()(double x) const { return 1.0 / (1.0 + std::exp(-x)); }
};

std::vector<Adjoint> gradient_of_sigmoid(GradientContext& context) {
  const Val y(context.builder, context.result), seed(context.builder, context.seed());
  return {seed * (y * (1.0 - y))};
}

}  // namespace

const OpDef sigmoid = {
    .name = "sigmoid",
    .documentation = "The logistic function, 1 / (1 + exp(-x)).",
    .min_operands = 1,
    .max_operands = 1,
    .default_attrs = {},
    .infer = infer_unary<kFloat>,
    .evaluate = evaluate_unary<kFloat, Sigmoid>,
    .gradient = gradient_of_sigmoid,
};

}  // namespace backcast::ops
