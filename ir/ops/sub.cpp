// sub: y = a - b; integers wrap.
#include "ir/ops/pointwise.h"

namespace backcast::ops {
namespace {

Value evaluate_sub(const EvalContext& c) {
  return map_binary(c, []<class T>(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) {
      return a - b;
    } else {
      return static_cast<T>(wrap(a) - wrap(b));
    }
  });
}

}  // namespace

const OpDef sub = {.name = "sub",
                   .documentation = "y = a - b; integers wrap.",
                   .min_operands = 2,
                   .max_operands = 2,
                   .default_attrs = {},
                   .infer = infer_binary,
                   .evaluate = evaluate_sub};

}  // namespace backcast::ops
