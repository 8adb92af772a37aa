// div: y = a / b. Integers truncate toward zero; a divisor of zero gives 0, and the lowest integer
// divided by -1 wraps around to itself.
#include "ir/ops/elementwise.h"
#include "ir/ops/val.h"

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

std::vector<Adjoint> gradient_of_div(GradientContext& context) {
  const Val y(context.builder, context.result), b(context.builder, context.operand(1));
  const Val share = Val(context.builder, context.seed()) / b;
  std::vector<Adjoint> result{share};
  if (context.wanted[1]) result.push_back(-(share * y));
  return result;
}

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
    .gradient = gradient_of_div,
};

}  // namespace backcast::ops
