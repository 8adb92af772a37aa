// acosh: y = acosh(x).
#include "ir/ops/pointwise.h"

namespace backcast::ops {
namespace {

double function(double x) { return std::acosh(x); }
Value evaluate_acosh(const EvalContext& c) { return map_float<function>(c); }

}  // namespace

const OpDef acosh = {.name = "acosh",
                     .documentation = "y = acosh(x).",
                     .min_operands = 1,
                     .max_operands = 1,
                     .default_attrs = {},
                     .infer = infer_same_float,
                     .evaluate = evaluate_acosh};

}  // namespace backcast::ops
