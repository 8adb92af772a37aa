// neg: y = -x. Integers wrap around, so that the lowest integer stays itself.
#include "ir/ops/elementwise.h"

namespace backcast::ops {
namespace {

struct Neg {
  template <class T>
  T operator()(T x) const {
    if constexpr (std::is_floating_point_v<T>) return -x;
    return wrapping_sub(T{0}, x);
  }
};

}  // namespace

const OpDef neg = {
    .name = "neg",
    .documentation = "The negative, -x; integers wrap around.",
    .min_operands = 1,
    .max_operands = 1,
    .default_attrs = {},
    .infer = infer_unary<kNumeric>,
    .evaluate = evaluate_unary<kNumeric, Neg>,
    .gradient = no_gradient("not differentiated"),
};

}  // namespace backcast::ops
