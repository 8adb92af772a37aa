// min: y = the smaller of a and b; NaN when either is NaN; of bools the logical and.
#include "ir/ops/elementwise.h"

namespace backcast::ops {
namespace {

struct Min {
  template <class T>
  T operator()(T a, T b) const {
    return min_of(a, b);
  }
};

}  // namespace

const OpDef min = {
    .name = "min",
    .documentation = "The smaller of two; NaN when either is NaN.",
    .min_operands = 2,
    .max_operands = 2,
    .default_attrs = {},
    .infer = infer_binary<kAny>,
    .evaluate = evaluate_binary<kAny, Min>,
    .gradient = no_gradient("not differentiated"),
};

}  // namespace backcast::ops
