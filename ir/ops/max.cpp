// max: y = the larger of a and b, NaN if either is.
#include "ir/ops/pointwise.h"

namespace backcast::ops {
namespace {

Value evaluate_max(const EvalContext& c) {
  return map_binary(c, []<class T>(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) {
      return std::isnan(a) ? a : a > b ? a : b;
    } else {
      return a > b ? a : b;
    }
  });
}

}  // namespace

const OpDef max = {.name = "max",
                   .documentation = "y = the larger of a and b, NaN if either is.",
                   .min_operands = 2,
                   .max_operands = 2,
                   .default_attrs = {},
                   .infer = infer_binary_any,
                   .evaluate = evaluate_max};

}  // namespace backcast::ops
