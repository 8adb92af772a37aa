// exp: y = eˣ.
#include "ir/ops/elementwise.h"

namespace backcast::ops {
namespace {

struct Exp {
  double operator()(double x) const { return std::exp(x); }
};

}  // namespace

const OpDef exp = {
    .name = "exp",
    .documentation = "The exponential function.",
    .min_operands = 1,
    .max_operands = 1,
    .default_attrs = {},
    .infer = infer_unary<kFloat>,
    .evaluate = evaluate_unary<kFloat, Exp>,
    .gradient = no_gradient("not differentiated"),
};

}  // namespace backcast::ops
