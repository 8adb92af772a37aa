// div: y = a / b; integers truncate toward zero and give 0 for b = 0.
#include "ir/ops/pointwise.h"

namespace backcast::ops {
namespace {

Value evaluate_div(const EvalContext& c) {
  return map_binary(c, []<class T>(T a, T b) { return safe_div(a, b); });
}

}  // namespace

const OpDef div = {
    .name = "div",
    .documentation = "y = a / b; integers truncate toward zero and give 0 for b = 0.",
    .min_operands = 2,
    .max_operands = 2,
    .default_attrs = {},
    .infer = infer_binary,
    .evaluate = evaluate_div};

}  // namespace backcast::ops
