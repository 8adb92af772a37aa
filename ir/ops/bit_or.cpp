// bit_or: y = a | b, bit by bit; on bool: logical.
#include "ir/ops/pointwise.h"

namespace backcast::ops {
namespace {

Value evaluate_bit_or(const EvalContext& c) {
  return map_binary(c, []<class T>(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) {
      return a;
    } else {
      return static_cast<T>(wrap(a) | wrap(b));
    }
  });
}

}  // namespace

const OpDef bit_or = {.name = "bit_or",
                      .documentation = "y = a | b, bit by bit; on bool: logical.",
                      .min_operands = 2,
                      .max_operands = 2,
                      .default_attrs = {},
                      .infer = infer_binary_bits,
                      .evaluate = evaluate_bit_or};

}  // namespace backcast::ops
