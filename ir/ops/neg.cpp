// neg: y = -x. Integers wrap around, so that the lowest integer stays itself.
#include "ir/ops/elementwise.h"
#include "ir/ops/val.h"

namespace backcast::ops {
namespace {

struct Neg {
  template <class T>
  T operator()(T x) const {
    if constexpr (std::is_floating_point_v<T>) return -x;
    return wrapping_sub(T{0}, x);
  }
};

std::vector<Adjoint> gradient_of_neg(GradientContext& context) {
  const Val seed(context.builder, context.seed());
  return {-seed};
}

}  // namespace

const OpDef neg = {
    .name = "neg",
    .documentation = "The negative, -x; integers wrap around.",
    .min_operands = 1,
    .max_operands = 1,
    .default_attrs = {},
    .infer = infer_unary<kNumeric>,
    .evaluate = evaluate_unary<kNumeric, Neg>,
    .gradient = gradient_of_neg,
};

}  // namespace backcast::ops
