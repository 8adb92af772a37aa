// max: y = the larger of a and b; NaN when either is NaN; of bools the logical or.
#include "ir/ops/binary_gradients.h"
#include "ir/ops/elementwise.h"
#include "ir/ops/val.h"

namespace backcast::ops {
namespace {

struct Max {
  template <class T>
  T operator()(T a, T b) const {
    return max_of(a, b);
  }
};

std::vector<Adjoint> gradient_of_max(GradientContext& context) {
  return gradient_of_extremum(context, Comparison::gt);
}

}  // namespace

const OpDef max = {
    .name = "max",
    .documentation = "The larger of two; NaN when either is NaN.",
    .min_operands = 2,
    .max_operands = 2,
    .default_attrs = {},
    .infer = infer_binary<kAny>,
    .evaluate = evaluate_binary<kAny, Max>,
    .gradient = gradient_of_max,
};

}  // namespace backcast::ops
