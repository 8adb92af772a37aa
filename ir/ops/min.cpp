// min: y = the smaller of a and b; NaN when either is NaN; of bools the logical and.
#include "ir/ops/binary_gradients.h"
#include "ir/ops/elementwise.h"
#include "ir/ops/val.h"

namespace backcast::ops {
namespace {

struct Min {
  template <class T>
  T operator()(T a, T b) const {
    return min_of(a, b);
  }
};

std::vector<Adjoint> gradient_of_min(GradientContext& context) {
  return gradient_of_extremum(context, Comparison::lt);
}

}  // namespace

const OpDef min = {
    .name = "min",
    .documentation = "The smaller of two; NaN when either is NaN.",
    .min_operands = 2,
    .max_operands = 2,
    .default_attrs = {},
    .infer = infer_binary<kAny>,
    .evaluate = evaluate_binary<kAny, Min>,
    .gradient = gradient_of_min,
};

}  // namespace backcast::ops
