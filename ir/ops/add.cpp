// add: y = a + b. Integers wrap around.
#include "ir/ops/elementwise.h"

namespace backcast::ops {
namespace {

struct Add {
  template <class T>
  T operator()(T a, T b) const {
    return wrapping_add(a, b);
  }
};

std::vector<Adjoint> gradient_of_add(GradientContext& context) {
  return {context.seed(), context.seed()};
}

}  // namespace

const OpDef add = {
    .name = "add",
    .documentation = "The sum a + b; integers wrap around.",
    .min_operands = 2,
    .max_operands = 2,
    .default_attrs = {},
    .infer = infer_binary<kNumeric>,
    .evaluate = evaluate_binary<kNumeric, Add>,
    .gradient = gradient_of_add,
};

}  // namespace backcast::ops
