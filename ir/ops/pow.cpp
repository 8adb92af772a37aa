// pow: y = aᵇ. Floating-point numbers follow C's pow. Integers are exact modulo 2ʷ for their width
// w; a negative exponent gives the truncated quotient, 0 unless a is 1 or -1.
#include "ir/ops/elementwise.h"
#include "ir/ops/val.h"

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

std::vector<Adjoint> gradient_of_pow(GradientContext& context) {
  // The replaced exponent and base keep 0 · ∞ out: b · a^(b-1) is 0 for b = 0, and aᵇ ln a is 0 for
  // a = 0 and b >= 0, also when differentiated again.
  const Val a(context.builder, context.operand(0)), b(context.builder, context.operand(1));
  const Val y(context.builder, context.result), seed(context.builder, context.seed());
  std::vector<Adjoint> result(2);
  if (context.wanted[0]) {
    const Val no_exponent = backcast::compare(b, Comparison::eq, 0.0);
    const Val less = backcast::select(no_exponent, b.like(0), b - 1.0);
    result[0] = seed * (b * backcast::pow(a, less));
  }
  if (context.wanted[1]) {
    const Val no_base = backcast::compare(a, Comparison::eq, 0.0)
                            .emit(bit_and, {backcast::compare(b, Comparison::ge, 0.0)});
    result[1] = seed * (y * backcast::log(backcast::select(no_base, a.like(1), a)));
  }
  return result;
}

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
    .gradient = gradient_of_pow,
};

}  // namespace backcast::ops
