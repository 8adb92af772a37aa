// relu: y = max(0, x); NaN stays NaN.
#include "ir/ops/pointwise.h"

namespace backcast::ops {
namespace {

Value evaluate_relu(const EvalContext& c) {
  return map_unary(c, []<class T>(T x) { return T{} > x ? T{} : x; });
}

}  // namespace

const OpDef relu = {.name = "relu",
                    .documentation = "y = max(0, x); NaN stays NaN.",
                    .min_operands = 1,
                    .max_operands = 1,
                    .default_attrs = {},
                    .infer = infer_same_number,
                    .evaluate = evaluate_relu};

}  // namespace backcast::ops
