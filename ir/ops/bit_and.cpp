// bit_and: y = a ∧ b bit by bit; of bools the logical and.
#include "ir/ops/elementwise.h"

namespace backcast::ops {
namespace {

struct BitAnd {
  template <class T>
  T operator()(T a, T b) const {
    return static_cast<T>(a & b);
  }
};

}  // namespace

const OpDef bit_and = {
    .name = "bit_and",
    .documentation = "The bitwise and; of bools the logical one.",
    .min_operands = 2,
    .max_operands = 2,
    .default_attrs = {},
    .infer = infer_binary<kBits>,
    .evaluate = evaluate_binary<kBits, BitAnd>,
    .gradient = zero_gradient("integers"),
};

}  // namespace backcast::ops
