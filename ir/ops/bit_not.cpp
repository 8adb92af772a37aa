// bit_not: y = every bit of x inverted; on bool: logical not.
#include "ir/ops/pointwise.h"

namespace backcast::ops {
namespace {

Value evaluate_bit_not(const EvalContext& c) {
  return map_unary(c, []<class T>(T x) {
    if constexpr (std::is_same_v<T, bool>) {
      return !x;
    } else if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(~wrap(x));
    } else {
      return x;
    }
  });
}

}  // namespace

const OpDef bit_not = {.name = "bit_not",
                       .documentation = "y = every bit of x inverted; on bool: logical not.",
                       .min_operands = 1,
                       .max_operands = 1,
                       .default_attrs = {},
                       .infer = infer_same_bits,
                       .evaluate = evaluate_bit_not};

}  // namespace backcast::ops
