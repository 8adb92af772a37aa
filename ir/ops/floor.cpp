// floor: y = ⌊x⌋; integers stay as they are.
#include "ir/ops/elementwise.h"

namespace backcast::ops {
namespace {

struct Floor {
  template <class T>
  T operator()(T x) const {
    if constexpr (std::is_floating_point_v<T>) return std::floor(x);
    return x;
  }
};

}  // namespace

const OpDef floor = {
    .name = "floor",
    .documentation = "The largest whole number that is not above x.",
    .min_operands = 1,
    .max_operands = 1,
    .default_attrs = {},
    .infer = infer_unary<kNumeric>,
    .evaluate = evaluate_unary<kNumeric, Floor>,
    .gradient = zero_gradient("piecewise constant"),
};

}  // namespace backcast::ops
