// erf: y = 2/√π ∫₀ˣ exp(-t²) dt.
#include "ir/ops/pointwise.h"

namespace backcast::ops {
namespace {

double function(double x) { return std::erf(x); }
Value evaluate_erf(const EvalContext& c) { return map_float<function>(c); }

}  // namespace

const OpDef erf = {.name = "erf",
                   .documentation = "y = 2/√π ∫₀ˣ exp(-t²) dt.",
                   .min_operands = 1,
                   .max_operands = 1,
                   .default_attrs = {},
                   .infer = infer_same_float,
                   .evaluate = evaluate_erf};

}  // namespace backcast::ops
