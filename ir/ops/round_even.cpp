// round_even: y = nearest integer, halves to even; integers stay.
#include "ir/ops/pointwise.h"

namespace backcast::ops {
namespace {

Value evaluate_round_even(const EvalContext& c) {
  return map_unary(c, []<class T>(T x) {
    if constexpr (std::is_floating_point_v<T>) {
      return std::nearbyint(x);
    } else {
      return x;
    }
  });
}

}  // namespace

const OpDef round_even = {.name = "round_even",
                          .documentation = "y = nearest integer, halves to even; integers stay.",
                          .min_operands = 1,
                          .max_operands = 1,
                          .default_attrs = {},
                          .infer = infer_same_number,
                          .evaluate = evaluate_round_even};

}  // namespace backcast::ops
