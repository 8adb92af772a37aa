// abs: y = |x|; the smallest integer stays.
#include "ir/ops/pointwise.h"

namespace backcast::ops {
namespace {

Value evaluate_abs(const EvalContext& c) {
  return map_unary(c, []<class T>(T x) {
    if constexpr (std::is_floating_point_v<T>) {
      return std::fabs(x);
    } else if constexpr (std::is_signed_v<T>) {
      return x < 0 ? static_cast<T>(uint64_t{0} - wrap(x)) : x;
    } else {
      return x;
    }
  });
}

}  // namespace

const OpDef abs = {.name = "abs",
                   .documentation = "y = |x|; the smallest integer stays.",
                   .min_operands = 1,
                   .max_operands = 1,
                   .default_attrs = {},
                   .infer = infer_same_number,
                   .evaluate = evaluate_abs};

}  // namespace backcast::ops
