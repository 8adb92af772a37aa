// erf: y = 2/√π ∫₀ˣ e^(-t²) dt.
#include "ir/ops/elementwise.h"
#include "ir/ops/val.h"

namespace backcast::ops {
namespace {

struct Erf {
  double operator()(double x) const { return std::erf(x); }
};

std::vector<Adjoint> gradient_of_erf(GradientContext& context) {
  constexpr double kScale = 1.1283791670955126;  // 2/√π
  const Val x(context.builder, context.operand(0)), seed(context.builder, context.seed());
  return {seed * (kScale * backcast::exp(-(x * x)))};
}

}  // namespace

const OpDef erf = {
    .name = "erf",
    .documentation = "The error function.",
    .min_operands = 1,
    .max_operands = 1,
    .default_attrs = {},
    .infer = infer_unary<kFloat>,
    .evaluate = evaluate_unary<kFloat, Erf>,
    .gradient = gradient_of_erf,
};

}  // namespace backcast::ops
