// mul: y = a · b. Integers wrap around.
#include "ir/ops/elementwise.h"

namespace backcast::ops {
namespace {

struct Mul {
  template <class T>
  T operator()(T a, T b) const {
    return wrapping_mul(a, b);
  }
};

}  // namespace

const OpDef mul = {
    .name = "mul",
    .documentation = "The product a * b; integers wrap around.",
    .min_operands = 2,
    .max_operands = 2,
    .default_attrs = {},
    .infer = infer_binary<kNumeric>,
    .evaluate = evaluate_binary<kNumeric, Mul>,
};

}  // namespace backcast::ops
