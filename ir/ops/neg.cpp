// neg: y = -x; integers wrap.
#include "ir/ops/pointwise.h"

namespace backcast::ops {
namespace {

Value evaluate_neg(const EvalContext& c) {
  return map_unary(c, []<class T>(T x) {
    if constexpr (std::is_floating_point_v<T>) {
      return -x;
    } else {
      return static_cast<T>(uint64_t{0} - wrap(x));
    }
  });
}

}  // namespace

const OpDef neg = {.name = "neg",
                   .documentation = "y = -x; integers wrap.",
                   .min_operands = 1,
                   .max_operands = 1,
                   .default_attrs = {},
                   .infer = infer_same_number,
                   .evaluate = evaluate_neg};

}  // namespace backcast::ops
