// sqrt: y = √x, NaN for x < 0.
#include "ir/ops/pointwise.h"

namespace backcast::ops {
namespace {

double function(double x) { return std::sqrt(x); }
Value evaluate_sqrt(const EvalContext& c) { return map_float<function>(c); }

}  // namespace

const OpDef sqrt = {.name = "sqrt",
                    .documentation = "y = √x, NaN for x < 0.",
                    .min_operands = 1,
                    .max_operands = 1,
                    .default_attrs = {},
                    .infer = infer_same_float,
                    .evaluate = evaluate_sqrt};

}  // namespace backcast::ops
