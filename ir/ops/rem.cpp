// rem: y = the remainder with the sign of a (fmod); integers give 0 for b = 0.
#include "ir/ops/pointwise.h"

namespace backcast::ops {
namespace {

Value evaluate_rem(const EvalContext& c) {
  return map_binary(c, []<class T>(T a, T b) { return safe_rem(a, b); });
}

}  // namespace

const OpDef rem = {
    .name = "rem",
    .documentation = "y = the remainder with the sign of a (fmod); integers give 0 for b = 0.",
    .min_operands = 2,
    .max_operands = 2,
    .default_attrs = {},
    .infer = infer_binary,
    .evaluate = evaluate_rem};

}  // namespace backcast::ops
