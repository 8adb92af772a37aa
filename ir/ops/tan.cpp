// tan: y = tan x, x in radians; NaN for infinities.
#include "ir/ops/elementwise.h"
#include "ir/ops/val.h"

namespace backcast::ops {
namespace {

struct Tan {
  double operator()(double x) const { return std::tan(x); }
};

std::vector<Adjoint> gradient_of_tan(GradientContext& context) {
  const Val y(context.builder, context.result), seed(context.builder, context.seed());
  return {seed * (1.0 + y * y)};
}

}  // namespace

const OpDef tan = {
    .name = "tan",
    .documentation = "The tangent of an angle in radians.",
    .min_operands = 1,
    .max_operands = 1,
    .default_attrs = {},
    .infer = infer_unary<kFloat>,
    .evaluate = evaluate_unary<kFloat, Tan>,
    .gradient = gradient_of_tan,
};

}  // namespace backcast::ops
