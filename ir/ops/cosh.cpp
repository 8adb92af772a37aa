// cosh: y = (eˣ + e⁻ˣ) / 2.
#include "ir/ops/elementwise.h"

namespace backcast::ops {
namespace {

struct Cosh {
  double operator()(double x) const { return std::cosh(x); }
};

}  // namespace

const OpDef cosh = {
    .name = "cosh",
    .documentation = "The hyperbolic cosine.",
    .min_operands = 1,
    .max_operands = 1,
    .default_attrs = {},
    .infer = infer_unary<kFloat>,
    .evaluate = evaluate_unary<kFloat, Cosh>,
    .gradient = no_gradient("not differentiated"),
};

}  // namespace backcast::ops
