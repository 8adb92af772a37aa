// shift_left: y = a · 2ᵇ, wrapping around. A negative shift or one by the width or more gives 0.
#include "ir/ops/elementwise.h"

namespace backcast::ops {
namespace {

struct ShiftLeft {
  template <class T>
  T operator()(T a, T b) const {
    if (b < T{0} || static_cast<uint64_t>(b) >= 8 * sizeof(T)) return T{0};
    return static_cast<T>(static_cast<uint64_t>(a) << b);
  }
};

}  // namespace

const OpDef shift_left = {
    .name = "shift_left",
    .documentation = "a shifted left by b bits; 0 when b is negative or not below the width.",
    .min_operands = 2,
    .max_operands = 2,
    .default_attrs = {},
    .infer = infer_binary<kInteger>,
    .evaluate = evaluate_binary<kInteger, ShiftLeft>,
    .gradient = zero_gradient("integers"),
};

}  // namespace backcast::ops
