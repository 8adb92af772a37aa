// exp: y = exp(x).
#include "ir/ops/pointwise.h"

namespace backcast::ops {
namespace {

double function(double x) { return std::exp(x); }
Value evaluate_exp(const EvalContext& c) { return map_float<function>(c); }

}  // namespace

const OpDef exp = {.name = "exp",
                   .documentation = "y = exp(x).",
                   .min_operands = 1,
                   .max_operands = 1,
                   .default_attrs = {},
                   .infer = infer_same_float,
                   .evaluate = evaluate_exp};

}  // namespace backcast::ops
