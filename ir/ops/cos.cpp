// cos: y = cos x, x in radians; NaN for infinities.
#include "ir/ops/elementwise.h"

namespace backcast::ops {
namespace {

struct Cos {
  double operator()(double x) const { return std::cos(x); }
};

}  // namespace

const OpDef cos = {
    .name = "cos",
    .documentation = "The cosine of an angle in radians.",
    .min_operands = 1,
    .max_operands = 1,
    .default_attrs = {},
    .infer = infer_unary<kFloat>,
    .evaluate = evaluate_unary<kFloat, Cos>,
    .gradient = no_gradient("not differentiated"),
};

}  // namespace backcast::ops
