// sub: y = a - b. Integers wrap around.
#include "ir/ops/elementwise.h"

namespace backcast::ops {
namespace {

struct Sub {
  template <class T>
  T operator()(T a, T b) const {
    return wrapping_sub(a, b);
  }
};

}  // namespace

const OpDef sub = {
    .name = "sub",
    .documentation = "The difference a - b; integers wrap around.",
    .min_operands = 2,
    .max_operands = 2,
    .default_attrs = {},
    .infer = infer_binary<kNumeric>,
    .evaluate = evaluate_binary<kNumeric, Sub>,
    .gradient = no_gradient("not differentiated"),
};

}  // namespace backcast::ops
