// asin: y = arcsin x in [-π/2, π/2]; NaN for |x| > 1.
#include "ir/ops/elementwise.h"

namespace backcast::ops {
namespace {

struct Asin {
  double operator()(double x) const { return std::asin(x); }
};

}  // namespace

const OpDef asin = {
    .name = "asin",
    .documentation = "The inverse sine in radians; NaN outside [-1, 1].",
    .min_operands = 1,
    .max_operands = 1,
    .default_attrs = {},
    .infer = infer_unary<kFloat>,
    .evaluate = evaluate_unary<kFloat, Asin>,
    .gradient = no_gradient("not differentiated"),
};

}  // namespace backcast::ops
