// round_even: y = the nearest whole number, halves to the even one (the default rounding mode).
#include "ir/ops/elementwise.h"

namespace backcast::ops {
namespace {

struct RoundEven {
  template <class T>
  T operator()(T x) const {
    if constexpr (std::is_floating_point_v<T>) return std::nearbyint(x);
    return x;
  }
};

}  // namespace

const OpDef round_even = {
    .name = "round_even",
    .documentation = "The nearest whole number, halves to the even one.",
    .min_operands = 1,
    .max_operands = 1,
    .default_attrs = {},
    .infer = infer_unary<kNumeric>,
    .evaluate = evaluate_unary<kNumeric, RoundEven>,
    .gradient = zero_gradient("piecewise constant"),
};

}  // namespace backcast::ops
