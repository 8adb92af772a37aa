// tanh: y = (eˣ - e⁻ˣ) / (eˣ + e⁻ˣ).
#include "ir/ops/elementwise.h"

namespace backcast::ops {
namespace {

struct Tanh {
  double operator()(double x) const { return std::tanh(x); }
};

}  // namespace

const OpDef tanh = {
    .name = "tanh",
    .documentation = "The hyperbolic tangent.",
    .min_operands = 1,
    .max_operands = 1,
    .default_attrs = {},
    .infer = infer_unary<kFloat>,
    .evaluate = evaluate_unary<kFloat, Tanh>,
    .gradient = no_gradient("not differentiated"),
};

}  // namespace backcast::ops
