// asin: y = asin(x).
#include "ir/ops/pointwise.h"

namespace backcast::ops {
namespace {

double function(double x) { return std::asin(x); }
Value evaluate_asin(const EvalContext& c) { return map_float<function>(c); }

}  // namespace

const OpDef asin = {.name = "asin",
                    .documentation = "y = asin(x).",
                    .min_operands = 1,
                    .max_operands = 1,
                    .default_attrs = {},
                    .infer = infer_same_float,
                    .evaluate = evaluate_asin};

}  // namespace backcast::ops
