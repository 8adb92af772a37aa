// ceil: y = smallest integer above or equal; integers stay.
#include "ir/ops/pointwise.h"

namespace backcast::ops {
namespace {

Value evaluate_ceil(const EvalContext& c) {
  return map_unary(c, []<class T>(T x) {
    if constexpr (std::is_floating_point_v<T>) {
      return std::ceil(x);
    } else {
      return x;
    }
  });
}

}  // namespace

const OpDef ceil = {.name = "ceil",
                    .documentation = "y = smallest integer above or equal; integers stay.",
                    .min_operands = 1,
                    .max_operands = 1,
                    .default_attrs = {},
                    .infer = infer_same_number,
                    .evaluate = evaluate_ceil};

}  // namespace backcast::ops
