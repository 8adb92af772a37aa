// rem: y = a - b · trunc(a / b), the remainder with the dividend's sign: C's % and fmod. An integer
// divisor of zero gives 0; a floating-point one gives NaN.
#include "ir/ops/elementwise.h"

namespace backcast::ops {
namespace {

struct Rem {
  template <class T>
  T operator()(T a, T b) const {
    return remainder_of(a, b);
  }
};

}  // namespace

const OpDef rem = {
    .name = "rem",
    .documentation =
        "The remainder of a / b with the sign of a, as C's % and fmod; 0 for an integer divisor of "
        "zero.",
    .min_operands = 2,
    .max_operands = 2,
    .default_attrs = {},
    .infer = infer_binary<kNumeric>,
    .evaluate = evaluate_binary<kNumeric, Rem>,
    .gradient = no_gradient("not differentiated"),
};

}  // namespace backcast::ops
