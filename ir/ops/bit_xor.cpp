// bit_xor: y = a ⊕ b bit by bit; of bools whether they differ.
#include "ir/ops/elementwise.h"

namespace backcast::ops {
namespace {

struct BitXor {
  template <class T>
  T operator()(T a, T b) const {
    return static_cast<T>(a ^ b);
  }
};

}  // namespace

const OpDef bit_xor = {
    .name = "bit_xor",
    .documentation = "The bitwise exclusive or; of bools whether they differ.",
    .min_operands = 2,
    .max_operands = 2,
    .default_attrs = {},
    .infer = infer_binary<kBits>,
    .evaluate = evaluate_binary<kBits, BitXor>,
    .gradient = zero_gradient("integers"),
};

}  // namespace backcast::ops
