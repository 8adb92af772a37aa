// bit_not: y = ¬x bit by bit; of a bool the logical negation.
#include "ir/ops/elementwise.h"

namespace backcast::ops {
namespace {

struct BitNot {
  bool operator()(bool x) const { return !x; }
  template <class T>
  T operator()(T x) const {
    return static_cast<T>(~x);
  }
};

}  // namespace

const OpDef bit_not = {
    .name = "bit_not",
    .documentation = "The bitwise complement; of a bool the logical negation.",
    .min_operands = 1,
    .max_operands = 1,
    .default_attrs = {},
    .infer = infer_unary<kBits>,
    .evaluate = evaluate_unary<kBits, BitNot>,
    .gradient = zero_gradient("integers"),
};

}  // namespace backcast::ops
