// atan: y = arctan x in [-π/2, π/2].
#include "ir/ops/elementwise.h"

namespace backcast::ops {
namespace {

struct Atan {
  double operator()(double x) const { return std::atan(x); }
};

}  // namespace

const OpDef atan = {
    .name = "atan",
    .documentation = "The inverse tangent in radians.",
    .min_operands = 1,
    .max_operands = 1,
    .default_attrs = {},
    .infer = infer_unary<kFloat>,
    .evaluate = evaluate_unary<kFloat, Atan>,
    .gradient = no_gradient("not differentiated"),
};

}  // namespace backcast::ops
