// sin: y = sin(x).
#include "ir/ops/pointwise.h"

namespace backcast::ops {
namespace {

double function(double x) { return std::sin(x); }
Value evaluate_sin(const EvalContext& c) { return map_float<function>(c); }

}  // namespace

const OpDef sin = {.name = "sin",
                   .documentation = "y = sin(x).",
                   .min_operands = 1,
                   .max_operands = 1,
                   .default_attrs = {},
                   .infer = infer_same_float,
                   .evaluate = evaluate_sin};

}  // namespace backcast::ops
