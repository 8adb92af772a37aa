// sinh: y = sinh(x).
#include "ir/ops/pointwise.h"

namespace backcast::ops {
namespace {

double function(double x) { return std::sinh(x); }
Value evaluate_sinh(const EvalContext& c) { return map_float<function>(c); }

}  // namespace

const OpDef sinh = {.name = "sinh",
                    .documentation = "y = sinh(x).",
                    .min_operands = 1,
                    .max_operands = 1,
                    .default_attrs = {},
                    .infer = infer_same_float,
                    .evaluate = evaluate_sinh};

}  // namespace backcast::ops
