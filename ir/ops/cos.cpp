// cos: y = cos(x).
#include "ir/ops/pointwise.h"

namespace backcast::ops {
namespace {

double function(double x) { return std::cos(x); }
Value evaluate_cos(const EvalContext& c) { return map_float<function>(c); }

}  // namespace

const OpDef cos = {.name = "cos",
                   .documentation = "y = cos(x).",
                   .min_operands = 1,
                   .max_operands = 1,
                   .default_attrs = {},
                   .infer = infer_same_float,
                   .evaluate = evaluate_cos};

}  // namespace backcast::ops
