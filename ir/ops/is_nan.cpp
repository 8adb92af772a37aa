// is_nan: y = x is not a number (bool).
#include "ir/ops/pointwise.h"

namespace backcast::ops {
namespace {

Type infer_bool(const InferContext& c) {
  TensorType type = infer_same_float(c).tensor();
  type.element = ElementType::boolean;
  return type;
}

Value evaluate_is_nan(const EvalContext& c) {
  return map_unary(c, [](auto x) { return std::isnan(static_cast<double>(x)); });
}

}  // namespace

const OpDef is_nan = {.name = "is_nan",
                      .documentation = "y = x is not a number (bool).",
                      .min_operands = 1,
                      .max_operands = 1,
                      .default_attrs = {},
                      .infer = infer_bool,
                      .evaluate = evaluate_is_nan};

}  // namespace backcast::ops
