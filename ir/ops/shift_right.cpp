// shift_right: y = a >> b; 0 when b is the width or more.
#include "ir/ops/pointwise.h"

namespace backcast::ops {
namespace {

Value evaluate_shift_right(const EvalContext& c) {
  return map_binary(c, []<class T>(T a, T b) {
    if constexpr (std::is_floating_point_v<T> || std::is_same_v<T, bool>) {
      return a;
    } else {
      return wrap(b) >= 8 * sizeof(T) ? T{} : static_cast<T>(a >> b);
    }
  });
}

}  // namespace

const OpDef shift_right = {.name = "shift_right",
                           .documentation = "y = a >> b; 0 when b is the width or more.",
                           .min_operands = 2,
                           .max_operands = 2,
                           .default_attrs = {},
                           .infer = infer_binary_integer,
                           .evaluate = evaluate_shift_right};

}  // namespace backcast::ops
