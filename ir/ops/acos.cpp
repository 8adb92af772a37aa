// acos: y = arccos x in [0, π]; NaN for |x| > 1.
#include "ir/ops/elementwise.h"

namespace backcast::ops {
namespace {

struct Acos {
  double operator()(double x) const { return std::acos(x); }
};

}  // namespace

const OpDef acos = {
    .name = "acos",
    .documentation = "The inverse cosine in radians; NaN outside [-1, 1].",
    .min_operands = 1,
    .max_operands = 1,
    .default_attrs = {},
    .infer = infer_unary<kFloat>,
    .evaluate = evaluate_unary<kFloat, Acos>,
    .gradient = no_gradient("not differentiated"),
};

}  // namespace backcast::ops
