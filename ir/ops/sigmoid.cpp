// sigmoid: y = 1 / (1 + e⁻ˣ). For large negative x the exponential overflows to infinity and y is
// 0.
#include "ir/ops/elementwise.h"

namespace backcast::ops {
namespace {

struct Sigmoid {
  double operator()(double x) const { return 1.0 / (1.0 + std::exp(-x)); }
};

}  // namespace

const OpDef sigmoid = {
    .name = "sigmoid",
    .documentation = "The logistic function, 1 / (1 + exp(-x)).",
    .min_operands = 1,
    .max_operands = 1,
    .default_attrs = {},
    .infer = infer_unary<kFloat>,
    .evaluate = evaluate_unary<kFloat, Sigmoid>,
    .gradient = no_gradient("not differentiated"),
};

}  // namespace backcast::ops
