// abs: y = |x|. The lowest integer of a signed type stays itself.
#include "ir/ops/elementwise.h"

namespace backcast::ops {
namespace {

struct Abs {
  template <class T>
  T operator()(T x) const {
    if constexpr (std::is_floating_point_v<T>) return std::fabs(x);
    return x < T{0} ? wrapping_sub(T{0}, x) : x;
  }
};

}  // namespace

const OpDef abs = {
    .name = "abs",
    .documentation = "The absolute value, |x|; the lowest integer stays itself.",
    .min_operands = 1,
    .max_operands = 1,
    .default_attrs = {},
    .infer = infer_unary<kNumeric>,
    .evaluate = evaluate_unary<kNumeric, Abs>,
    .gradient = no_gradient("not differentiated"),
};

}  // namespace backcast::ops
