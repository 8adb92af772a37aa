// sin: y = sin x, x in radians; NaN for infinities.
#include "ir/ops/elementwise.h"

namespace backcast::ops {
namespace {

struct Sin {
  double operator()(double x) const { return std::sin(x); }
};

}  // namespace

const OpDef sin = {
    .name = "sin",
    .documentation = "The sine of an angle in radians.",
    .min_operands = 1,
    .max_operands = 1,
    .default_attrs = {},
    .infer = infer_unary<kFloat>,
    .evaluate = evaluate_unary<kFloat, Sin>,
    .gradient = no_gradient("not differentiated"),
};

}  // namespace backcast::ops
