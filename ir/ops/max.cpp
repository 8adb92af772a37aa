// max: y = the larger of a and b; NaN when either is NaN; of bools the logical or.
#include "ir/ops/elementwise.h"

namespace backcast::ops {
namespace {

struct Max {
  template <class T>
  T operator()(T a, T b) const {
    return max_of(a, b);
  }
};

}  // namespace

const OpDef max = {
    .name = "max",
    .documentation = "The larger of two; NaN when either is NaN.",
    .min_operands = 2,
    .max_operands = 2,
    .default_attrs = {},
    .infer = infer_binary<kAny>,
    .evaluate = evaluate_binary<kAny, Max>,
    .gradient = no_gradient("not differentiated"),
};

}  // namespace backcast::ops
