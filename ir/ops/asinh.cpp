// asinh: y = ln(x + √(x² + 1)), the inverse of sinh.
#include "ir/ops/elementwise.h"

namespace backcast::ops {
namespace {

struct Asinh {
  double operator()(double x) const { return std::asinh(x); }
};

}  // namespace

const OpDef asinh = {
    .name = "asinh",
    .documentation = "The inverse hyperbolic sine.",
    .min_operands = 1,
    .max_operands = 1,
    .default_attrs = {},
    .infer = infer_unary<kFloat>,
    .evaluate = evaluate_unary<kFloat, Asinh>,
    .gradient = no_gradient("not differentiated"),
};

}  // namespace backcast::ops
