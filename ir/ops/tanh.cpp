// tanh: y = tanh(x).
#include "ir/ops/pointwise.h"

namespace backcast::ops {
namespace {

double function(double x) { return std::tanh(x); }
Value evaluate_tanh(const EvalContext& c) { return map_float<function>(c); }

}  // namespace

const OpDef tanh = {.name = "tanh",
                    .documentation = "y = tanh(x).",
                    .min_operands = 1,
                    .max_operands = 1,
                    .default_attrs = {},
                    .infer = infer_same_float,
                    .evaluate = evaluate_tanh};

}  // namespace backcast::ops
