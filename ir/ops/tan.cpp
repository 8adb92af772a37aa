// tan: y = tan x, x in radians; NaN for infinities.
#include "ir/ops/elementwise.h"

namespace backcast::ops {
namespace {

struct Tan {
  double operator()(double x) const { return std::tan(x); }
};

}  // namespace

const OpDef tan = {
    .name = "tan",
    .documentation = "The tangent of an angle in radians.",
    .min_operands = 1,
    .max_operands = 1,
    .default_attrs = {},
    .infer = infer_unary<kFloat>,
    .evaluate = evaluate_unary<kFloat, Tan>,
    .gradient = no_gradient("not differentiated"),
};

}  // namespace backcast::ops
