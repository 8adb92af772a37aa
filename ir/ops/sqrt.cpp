// sqrt: y = √x, NaN for negative x.
#include "ir/ops/elementwise.h"
#include "ir/ops/val.h"

namespace backcast::ops {
namespace {

struct Sqrt {
  double operator()(double x) const { return std::sqrt(x); }
};

std::vector<Adjoint> gradient_of_sqrt(GradientContext& context) {
  const Val y(context.builder, context.result), seed(context.builder, context.seed());
  return {seed / (y * 2.0)};
}

}  // namespace

const OpDef sqrt = {
    .name = "sqrt",
    .documentation = "The square root; NaN for negative numbers.",
    .min_operands = 1,
    .max_operands = 1,
    .default_attrs = {},
    .infer = infer_unary<kFloat>,
    .evaluate = evaluate_unary<kFloat, Sqrt>,
    .gradient = gradient_of_sqrt,
};

}  // namespace backcast::ops
