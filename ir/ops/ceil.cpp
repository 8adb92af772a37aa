// ceil: y = ⌈x⌉; integers stay as they are.
#include "ir/ops/elementwise.h"

namespace backcast::ops {
namespace {

struct Ceil {
  template <class T>
  T operator()(T x) const {
    if constexpr (std::is_floating_point_v<T>) return std::ceil(x);
    return x;
  }
};

}  // namespace

const OpDef ceil = {
    .name = "ceil",
    .documentation = "The smallest whole number that is not below x.",
    .min_operands = 1,
    .max_operands = 1,
    .default_attrs = {},
    .infer = infer_unary<kNumeric>,
    .evaluate = evaluate_unary<kNumeric, Ceil>,
    .gradient = zero_gradient("piecewise constant"),
};

}  // namespace backcast::ops
