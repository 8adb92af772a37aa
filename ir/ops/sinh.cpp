// sinh: y = (eˣ - e⁻ˣ) / 2.
#include "ir/ops/elementwise.h"

namespace backcast::ops {
namespace {

struct Sinh {
  double operator()(double x) const { return std::sinh(x); }
};

}  // namespace

const OpDef sinh = {
    .name = "sinh",
    .documentation = "The hyperbolic sine.",
    .min_operands = 1,
    .max_operands = 1,
    .default_attrs = {},
    .infer = infer_unary<kFloat>,
    .evaluate = evaluate_unary<kFloat, Sinh>,
    .gradient = no_gradient("not differentiated"),
};

}  // namespace backcast::ops
