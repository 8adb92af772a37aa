// abs: y = |x|. The lowest integer of a signed type stays itself.
#include "ir/ops/elementwise.h"
#include "ir/ops/val.h"

namespace backcast::ops {
namespace {

struct Abs {
  template <class T>
  T operator()(T x) const {
    if constexpr (std::is_floating_point_v<T>) return std::fabs(x);
    return x < T{0} ? wrapping_sub(T{0}, x) : x;
  }
};

std::vector<Adjoint> gradient_of_abs(GradientContext& context) {
  // 0 at the kink.
  const Val x(context.builder, context.operand(0)), seed(context.builder, context.seed());
  return {seed * backcast::sign(x)};
}

}  // namespace

const OpDef abs = {
    .name = "abs",
    .documentation = "The absolute value, |x|; the lowest integer stays itself.",
    .min_operands = 1,
    .max_operands = 1,
    .default_attrs = {},
    .infer = infer_unary<kNumeric>,
    .evaluate = evaluate_unary<kNumeric, Abs>,
    .gradient = gradient_of_abs,
};

}  // namespace backcast::ops
