// sigmoid: y = 1 / (1 + exp(-x)).
#include "ir/ops/pointwise.h"

namespace backcast::ops {
namespace {

double function(double x) { return 1.0 / (1.0 + std::exp(-x)); }
Value evaluate_sigmoid(const EvalContext& c) { return map_float<function>(c); }

}  // namespace

const OpDef sigmoid = {.name = "sigmoid",
                       .documentation = "y = 1 / (1 + exp(-x)).",
                       .min_operands = 1,
                       .max_operands = 1,
                       .default_attrs = {},
                       .infer = infer_same_float,
                       .evaluate = evaluate_sigmoid};

}  // namespace backcast::ops
