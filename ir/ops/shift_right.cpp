// shift_right: y = ⌊a / 2ᵇ⌋: logical for unsigned, arithmetic for signed types. A negative shift or
// one by the width or more gives 0, whatever the sign of a.
#include "ir/ops/elementwise.h"

namespace backcast::ops {
namespace {

struct ShiftRight {
  template <class T>
  T operator()(T a, T b) const {
    if (b < T{0} || static_cast<uint64_t>(b) >= 8 * sizeof(T)) return T{0};
    return static_cast<T>(a >> b);
  }
};

}  // namespace

const OpDef shift_right = {
    .name = "shift_right",
    .documentation =
        "a shifted right by b bits, arithmetically when signed; 0 when b is negative or not below "
        "the width.",
    .min_operands = 2,
    .max_operands = 2,
    .default_attrs = {},
    .infer = infer_binary<kInteger>,
    .evaluate = evaluate_binary<kInteger, ShiftRight>,
    .gradient = zero_gradient("integers"),
};

}  // namespace backcast::ops
