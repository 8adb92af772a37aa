// cosh: y = cosh(x).
#include "ir/ops/pointwise.h"

namespace backcast::ops {
namespace {

double function(double x) { return std::cosh(x); }
Value evaluate_cosh(const EvalContext& c) { return map_float<function>(c); }

}  // namespace

const OpDef cosh = {.name = "cosh",
                    .documentation = "y = cosh(x).",
                    .min_operands = 1,
                    .max_operands = 1,
                    .default_attrs = {},
                    .infer = infer_same_float,
                    .evaluate = evaluate_cosh};

}  // namespace backcast::ops
