// rem: y = a - b · trunc(a / b), the remainder with the dividend's sign: C's % and fmod. An integer
// divisor of zero gives 0; a floating-point one gives NaN.
#include "ir/ops/binary_gradients.h"
#include "ir/ops/elementwise.h"
#include "ir/ops/val.h"

namespace backcast::ops {
namespace {

struct Rem {
  template <class T>
  T operator()(T a, T b) const {
    return remainder_of(a, b);
  }
};

std::vector<Adjoint> gradient_of_rem(GradientContext& context) {
  return gradient_of_remainder(context);
}

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
    .gradient = gradient_of_rem,
};

}  // namespace backcast::ops
