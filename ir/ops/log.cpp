// log: y = ln x: -inf for 0, NaN for negative x.
#include "ir/ops/elementwise.h"
#include "ir/ops/val.h"

namespace backcast::ops {
namespace {

struct Log {
  double operator()(double x) const { return std::log(x); }
};

std::vector<Adjoint> gradient_of_log(GradientContext& context) {
  const Val x(context.builder, context.operand(0)), seed(context.builder, context.seed());
  return {seed / x};
}

}  // namespace

const OpDef log = {
    .name = "log",
    .documentation = "The natural logarithm; -inf for 0 and NaN for negative numbers.",
    .min_operands = 1,
    .max_operands = 1,
    .default_attrs = {},
    .infer = infer_unary<kFloat>,
    .evaluate = evaluate_unary<kFloat, Log>,
    .gradient = gradient_of_log,
};

}  // namespace backcast::ops
