// log: y = ln x, NaN for x < 0, -inf at 0.
#include "ir/ops/pointwise.h"

namespace backcast::ops {
namespace {

double function(double x) { return std::log(x); }
Value evaluate_log(const EvalContext& c) { return map_float<function>(c); }

}  // namespace

const OpDef log = {.name = "log",
                   .documentation = "y = ln x, NaN for x < 0, -inf at 0.",
                   .min_operands = 1,
                   .max_operands = 1,
                   .default_attrs = {},
                   .infer = infer_same_float,
                   .evaluate = evaluate_log};

}  // namespace backcast::ops
