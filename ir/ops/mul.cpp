// mul: y = a · b. Integers wrap around.
#include "ir/ops/elementwise.h"
#include "ir/ops/val.h"

namespace backcast::ops {
namespace {

struct Mul {
  template <class T>
  T operator()(T a, T b) const {
    return wrapping_mul(a, b);
  }
};

std::vector<Adjoint> gradient_of_mul(GradientContext& context) {
  const Val seed(context.builder, context.seed());
  std::vector<Adjoint> result(2);
  for (size_t i = 0; i < 2; ++i) {
    if (context.wanted[i]) result[i] = seed * Val(context.builder, context.operand(1 - i));
  }
  return result;
}

}  // namespace

const OpDef mul = {
    .name = "mul",
    .documentation = "The product a * b; integers wrap around.",
    .min_operands = 2,
    .max_operands = 2,
    .default_attrs = {},
    .infer = infer_binary<kNumeric>,
    .evaluate = evaluate_binary<kNumeric, Mul>,
    .gradient = gradient_of_mul,
};

}  // namespace backcast::ops
