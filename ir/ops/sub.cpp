// sub: y = a - b. Integers wrap around.
#include "ir/ops/elementwise.h"
#include "ir/ops/val.h"

namespace backcast::ops {
namespace {

struct Sub {
  template <class T>
  T operator()(T a, T b) const {
    return wrapping_sub(a, b);
  }
};

std::vector<Adjoint> gradient_of_sub(GradientContext& context) {
  const Val seed(context.builder, context.seed());
  std::vector<Adjoint> result{seed};
  if (context.wanted[1]) result.push_back(-seed);
  return result;
}

}  // namespace

const OpDef sub = {
    .name = "sub",
    .documentation = "The difference a - b; integers wrap around.",
    .min_operands = 2,
    .max_operands = 2,
    .default_attrs = {},
    .infer = infer_binary<kNumeric>,
    .evaluate = evaluate_binary<kNumeric, Sub>,
    .gradient = gradient_of_sub,
};

}  // namespace backcast::ops
