// pow: y = aᵇ. Floating-point numbers follow C's pow. Integers are exact modulo 2ʷ for their width
// w; a negative exponent gives the truncated quotient, 0 unless a is 1 or -1.
#include "ir/ops/elementwise.h"

namespace backcast::ops {
namespace {

template <class T>
T integer_power(T base, T exponent) {
  if (exponent < T{0}) {
    if (base == T{1}) return base;
    if (base != static_cast<T>(-1)) return T{0};
    return (exponent & 1) != 0 ? base : T{1};
  }
  T result = 1;
  while (exponent > T{0}) {
    if ((exponent & 1) != 0) result = wrapping_mul(result, base);
    base = wrapping_mul(base, base);
    exponent = static_cast<T>(exponent >> 1);
  }
  return result;
}

struct Pow {
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (std::is_floating_point_v<T>) {
      return std::pow(a, b);
    } else {
      return integer_power(a, b);
    }
  }
};

}  // namespace

const OpDef pow = {
    .name = "pow",
    .documentation =
        "The power a to the b; integers wrap around, and a negative exponent truncates to 0 unless "
        "a is 1 or -1.",
    .min_operands = 2,
    .max_operands = 2,
    .default_attrs = {},
    .infer = infer_binary<kNumeric>,
    .evaluate = evaluate_binary<kNumeric, Pow>,
    .gradient = no_gradient("not differentiated"),
};

}  // namespace backcast::ops
