// tan: y = tan(x).
#include "ir/ops/pointwise.h"

namespace backcast::ops {
namespace {

double function(double x) { return std::tan(x); }
Value evaluate_tan(const EvalContext& c) { return map_float<function>(c); }

}  // namespace

const OpDef tan = {.name = "tan",
                   .documentation = "y = tan(x).",
                   .min_operands = 1,
                   .max_operands = 1,
                   .default_attrs = {},
                   .infer = infer_same_float,
                   .evaluate = evaluate_tan};

}  // namespace backcast::ops
