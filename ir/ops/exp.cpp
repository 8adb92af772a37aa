// exp: y = eˣ.
#include "ir/ops/elementwise.h"
#include "ir/ops/val.h"

namespace backcast::ops {
namespace {

struct Exp {
  double operator()(double x) const { return std::exp(x); }
};

std::vector<Adjoint> gradient_of_exp(GradientContext& context) {
  const Val y(context.builder, context.result), seed(context.builder, context.seed());
  return {seed * y};
}

}  // namespace

const OpDef exp = {
    .name = "exp",
    .documentation = "The exponential function.",
    .min_operands = 1,
    .max_operands = 1,
    .default_attrs = {},
    .infer = infer_unary<kFloat>,
    .evaluate = evaluate_unary<kFloat, Exp>,
    .gradient = gradient_of_exp,
};

}  // namespace backcast::ops
