// div: y = a / b. Integers truncate toward zero; a divisor of zero gives 0, and the lowest integer
// divided by -1 wraps around to itself.
#include "ir/ops/elementwise.h"

namespace backcast::ops {
namespace {

struct Div {
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (std::is_floating_point_v<T>) {
      return a / b;
    } else {
      if (b == 0) return T{0};
      if constexpr (std::is_signed_v<T>) {
        if (b == -1) return wrapping_sub(T{0}, a);
      }
      return static_cast<T>(a / b);
    }
  }
};

}  // namespace

const OpDef div = {
    .name = "div",
    .documentation =
        "The quotient a / b; integers truncate toward zero and give 0 for a zero divisor.",
    .min_operands = 2,
    .max_operands = 2,
    .default_attrs = {},
    .infer = infer_binary<kNumeric>,
    .evaluate = evaluate_binary<kNumeric, Div>,
    .gradient = no_gradient("not differentiated"),
};

}  // namespace backcast::ops
