// acosh: y = ln(x + √(x² - 1)), the inverse of cosh; NaN for x < 1.
#include "ir/ops/elementwise.h"

namespace backcast::ops {
namespace {

struct Acosh {
  double operator()(double x) const { return std::acosh(x); }
};

}  // namespace

const OpDef acosh = {
    .name = "acosh",
    .documentation = "The inverse hyperbolic cosine; NaN below 1.",
    .min_operands = 1,
    .max_operands = 1,
    .default_attrs = {},
    .infer = infer_unary<kFloat>,
    .evaluate = evaluate_unary<kFloat, Acosh>,
    .gradient = no_gradient("not differentiated"),
};

}  // namespace backcast::ops
