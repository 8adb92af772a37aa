// atan: y = arctan x in [-π/2, π/2].
#include "ir/ops/elementwise.h"
#include "ir/ops/val.h"

namespace backcast::ops {
namespace {

struct Atan {
  double operator()(double x) const { return std::atan(x); }
};

std::vector<Adjoint> gradient_of_atan(GradientContext& context) {
  const Val x(context.builder, context.operand(0)), seed(context.builder, context.seed());
  return {seed / (1.0 + x * x)};
}

}  // namespace

const OpDef atan = {
    .name = "atan",
    .documentation = "The inverse tangent in radians.",
    .min_operands = 1,
    .max_operands = 1,
    .default_attrs = {},
    .infer = infer_unary<kFloat>,
    .evaluate = evaluate_unary<kFloat, Atan>,
    .gradient = gradient_of_atan,
};

}  // namespace backcast::ops
