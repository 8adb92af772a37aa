// atan: y = atan(x).
#include "ir/ops/pointwise.h"

namespace backcast::ops {
namespace {

double function(double x) { return std::atan(x); }
Value evaluate_atan(const EvalContext& c) { return map_float<function>(c); }

}  // namespace

const OpDef atan = {.name = "atan",
                    .documentation = "y = atan(x).",
                    .min_operands = 1,
                    .max_operands = 1,
                    .default_attrs = {},
                    .infer = infer_same_float,
                    .evaluate = evaluate_atan};

}  // namespace backcast::ops
