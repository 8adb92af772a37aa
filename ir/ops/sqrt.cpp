// sqrt: y = √x, NaN for negative x.
#include "ir/ops/elementwise.h"

namespace backcast::ops {
namespace {

struct Sqrt {
  double operator()(double x) const { return std::sqrt(x); }
};

}  // namespace

const OpDef sqrt = {
    .name = "sqrt",
    .documentation = "The square root; NaN for negative numbers.",
    .min_operands = 1,
    .max_operands = 1,
    .default_attrs = {},
    .infer = infer_unary<kFloat>,
    .evaluate = evaluate_unary<kFloat, Sqrt>,
    .gradient = no_gradient("not differentiated"),
};

}  // namespace backcast::ops
