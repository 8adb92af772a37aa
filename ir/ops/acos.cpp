// acos: y = arccos x in [0, π]; NaN for |x| > 1.
#include "ir/ops/elementwise.h"
#include "ir/ops/val.h"

namespace backcast::ops {
namespace {

struct Acos {
  double operator()(double x) const { return std::acos(x); }
};

std::vector<Adjoint> gradient_of_acos(GradientContext& context) {
  const Val x(context.builder, context.operand(0)), seed(context.builder, context.seed());
  return {-(seed / backcast::sqrt((1.0 - x) * (1.0 + x)))};
}

}  // namespace

const OpDef acos = {
    .name = "acos",
    .documentation = "The inverse cosine in radians; NaN outside [-1, 1].",
    .min_operands = 1,
    .max_operands = 1,
    .default_attrs = {},
    .infer = infer_unary<kFloat>,
    .evaluate = evaluate_unary<kFloat, Acos>,
    .gradient = gradient_of_acos,
};

}  // namespace backcast::ops
