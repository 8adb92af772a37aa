// is_inf: y = x is +∞ (if positive) or -∞ (if negative) (bool).
#include "ir/ops/pointwise.h"

namespace backcast::ops {
namespace {

Type infer_bool(const InferContext& c) {
  TensorType type = infer_same_float(c).tensor();
  type.element = ElementType::boolean;
  return type;
}

Value evaluate_is_inf(const EvalContext& c) {
  const IsInfAttrs& attrs = c.node.attrs.as<IsInfAttrs>();
  return map_unary(c, [&](auto x) {
    double v = static_cast<double>(x);
    return std::isinf(v) && (v > 0 ? attrs.positive : attrs.negative);
  });
}

}  // namespace

const OpDef is_inf = {.name = "is_inf",
                      .documentation = "y = x is +∞ (if positive) or -∞ (if negative) (bool).",
                      .min_operands = 1,
                      .max_operands = 1,
                      .default_attrs = IsInfAttrs{},
                      .infer = infer_bool,
                      .evaluate = evaluate_is_inf};

}  // namespace backcast::ops
