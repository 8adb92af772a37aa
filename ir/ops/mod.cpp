// mod: y = the remainder with the sign of b; integers give 0 for b = 0.
#include "ir/ops/pointwise.h"

namespace backcast::ops {
namespace {

Value evaluate_mod(const EvalContext& c) {
  return map_binary(c, []<class T>(T a, T b) {
    T r = safe_rem(a, b);
    bool differ = (r < T{}) != (b < T{});
    return r != T{} && differ ? static_cast<T>(r + b) : r;
  });
}

}  // namespace

const OpDef mod = {
    .name = "mod",
    .documentation = "y = the remainder with the sign of b; integers give 0 for b = 0.",
    .min_operands = 2,
    .max_operands = 2,
    .default_attrs = {},
    .infer = infer_binary,
    .evaluate = evaluate_mod};

}  // namespace backcast::ops
