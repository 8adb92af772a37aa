// pow: y = a to the power b; integers exactly (wrapping), a negative exponent truncates.
#include "ir/ops/pointwise.h"

namespace backcast::ops {
namespace {

template <class T>
T integer_pow(T base, T exponent) {
  if (exponent < T{}) {
    if (base == T{1}) return base;
    if (base == static_cast<T>(-1)) return wrap(exponent) % 2 ? base : T{1};
    return T{};
  }
  uint64_t result = 1, power = wrap(base);
  for (uint64_t e = wrap(exponent); e > 0; e >>= 1) {
    if (e & 1) result *= power;
    power *= power;
  }
  return static_cast<T>(result);
}

Value evaluate_pow(const EvalContext& c) {
  return map_binary(c, []<class T>(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) {
      return std::pow(a, b);
    } else {
      return integer_pow(a, b);
    }
  });
}

}  // namespace

const OpDef pow = {
    .name = "pow",
    .documentation =
        "y = a to the power b; integers exactly (wrapping), a negative exponent truncates.",
    .min_operands = 2,
    .max_operands = 2,
    .default_attrs = {},
    .infer = infer_binary,
    .evaluate = evaluate_pow};

}  // namespace backcast::ops
