// sign: y = 1, -1 or x itself for x > 0, x < 0 and x = 0 (of either sign) or NaN.
#include "ir/ops/elementwise.h"

namespace backcast::ops {
namespace {

struct Sign {
  template <class T>
  T operator()(T x) const {
    if (x > T{0}) return T{1};
    return x < T{0} ? static_cast<T>(-1) : x;
  }
};

}  // namespace

const OpDef sign = {
    .name = "sign",
    .documentation = "1 for positive, -1 for negative numbers; zero and NaN stay what they are.",
    .min_operands = 1,
    .max_operands = 1,
    .default_attrs = {},
    .infer = infer_unary<kNumeric>,
    .evaluate = evaluate_unary<kNumeric, Sign>,
    .gradient = zero_gradient("piecewise constant"),
};

}  // namespace backcast::ops
