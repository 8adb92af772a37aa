// bit_or: y = a ∨ b bit by bit; of bools the logical or.
#include "ir/ops/elementwise.h"

namespace backcast::ops {
namespace {

struct BitOr {
  template <class T>
  T operator()(T a, T b) const {
    return static_cast<T>(a | b);
  }
};

}  // namespace

const OpDef bit_or = {
    .name = "bit_or",
    .documentation = "The bitwise or; of bools the logical one.",
    .min_operands = 2,
    .max_operands = 2,
    .default_attrs = {},
    .infer = infer_binary<kBits>,
    .evaluate = evaluate_binary<kBits, BitOr>,
    .gradient = zero_gradient("integers"),
};

}  // namespace backcast::ops
