// sign: y = -1, 0 or 1; zeros and NaN stay as they are.
#include "ir/ops/pointwise.h"

namespace backcast::ops {
namespace {

Value evaluate_sign(const EvalContext& c) {
  return map_unary(c, []<class T>(T x) {
    if constexpr (std::is_floating_point_v<T>) {
      return x > 0 ? 1.0 : x < 0 ? -1.0 : x;
    } else {
      return static_cast<T>(x > T{} ? 1 : x == T{} ? 0 : -1);
    }
  });
}

}  // namespace

const OpDef sign = {.name = "sign",
                    .documentation = "y = -1, 0 or 1; zeros and NaN stay as they are.",
                    .min_operands = 1,
                    .max_operands = 1,
                    .default_attrs = {},
                    .infer = infer_same_number,
                    .evaluate = evaluate_sign};

}  // namespace backcast::ops
