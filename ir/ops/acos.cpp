// acos: y = acos(x).
#include "ir/ops/pointwise.h"

namespace backcast::ops {
namespace {

double function(double x) { return std::acos(x); }
Value evaluate_acos(const EvalContext& c) { return map_float<function>(c); }

}  // namespace

const OpDef acos = {.name = "acos",
                    .documentation = "y = acos(x).",
                    .min_operands = 1,
                    .max_operands = 1,
                    .default_attrs = {},
                    .infer = infer_same_float,
                    .evaluate = evaluate_acos};

}  // namespace backcast::ops
