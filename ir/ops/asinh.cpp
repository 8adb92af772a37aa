// asinh: y = asinh(x).
#include "ir/ops/pointwise.h"

namespace backcast::ops {
namespace {

double function(double x) { return std::asinh(x); }
Value evaluate_asinh(const EvalContext& c) { return map_float<function>(c); }

}  // namespace

const OpDef asinh = {.name = "asinh",
                     .documentation = "y = asinh(x).",
                     .min_operands = 1,
                     .max_operands = 1,
                     .default_attrs = {},
                     .infer = infer_same_float,
                     .evaluate = evaluate_asinh};

}  // namespace backcast::ops
