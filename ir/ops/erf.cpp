// erf: y = 2/√π ∫₀ˣ e^(-t²) dt.
#include "ir/ops/elementwise.h"

namespace backcast::ops {
namespace {

struct Erf {
  double operator()(double x) const { return std::erf(x); }
};

}  // namespace

const OpDef erf = {
    .name = "erf",
    .documentation = "The error function.",
    .min_operands = 1,
    .max_operands = 1,
    .default_attrs = {},
    .infer = infer_unary<kFloat>,
    .evaluate = evaluate_unary<kFloat, Erf>,
    .gradient = no_gradient("not differentiated"),
};

}  // namespace backcast::ops
