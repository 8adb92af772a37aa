// atanh: y = atanh(x).
#include "ir/ops/pointwise.h"

namespace backcast::ops {
namespace {

double function(double x) { return std::atanh(x); }
Value evaluate_atanh(const EvalContext& c) { return map_float<function>(c); }

}  // namespace

const OpDef atanh = {.name = "atanh",
                     .documentation = "y = atanh(x).",
                     .min_operands = 1,
                     .max_operands = 1,
                     .default_attrs = {},
                     .infer = infer_same_float,
                     .evaluate = evaluate_atanh};

}  // namespace backcast::ops
