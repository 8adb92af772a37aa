// mod: y = a - b · ⌊a / b⌋, the remainder with the divisor's sign, computed from the exact
// remainder of truncation so that no quotient is rounded. An integer divisor of zero gives 0; a
// floating-point one gives NaN.
#include "ir/ops/binary_gradients.h"
#include "ir/ops/elementwise.h"
#include "ir/ops/val.h"

namespace backcast::ops {
namespace {

struct Mod {
  template <class T>
  T operator()(T a, T b) const {
    const T r = remainder_of(a, b);
    return r != T{0} && (r < T{0}) != (b < T{0}) ? wrapping_add(r, b) : r;
  }
};

std::vector<Adjoint> gradient_of_mod(GradientContext& context) {
  return gradient_of_remainder(context);
}

}  // namespace

const OpDef mod = {
    .name = "mod",
    .documentation = "The remainder of a / b with the sign of b; 0 for an integer divisor of zero.",
    .min_operands = 2,
    .max_operands = 2,
    .default_attrs = {},
    .infer = infer_binary<kNumeric>,
    .evaluate = evaluate_binary<kNumeric, Mod>,
    .gradient = gradient_of_mod,
};

}  // namespace backcast::ops
