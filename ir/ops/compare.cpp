// compare: y = a ? b for the direction eq, ne, lt, le, gt or ge (bool); false for NaN except ne.
#include "ir/ops/pointwise.h"

namespace backcast::ops {
namespace {

Type infer_compare(const InferContext& c) {
  TensorType type = infer_binary_any(c).tensor();
  type.element = ElementType::boolean;
  return type;
}

Value evaluate_compare(const EvalContext& c) {
  Comparison direction = c.node.attrs.as<CompareAttrs>().direction;
  return map_binary(c, [&](auto a, auto b) {
    switch (direction) {
      case Comparison::eq:
        return a == b;
      case Comparison::ne:
        return a != b;
      case Comparison::lt:
        return a < b;
      case Comparison::le:
        return a <= b;
      case Comparison::gt:
        return a > b;
      case Comparison::ge:
        return a >= b;
    }
    return false;
  });
}

}  // namespace

const OpDef compare = {
    .name = "compare",
    .documentation =
        "y = a ? b for the direction eq, ne, lt, le, gt or ge (bool); false for NaN except ne.",
    .min_operands = 2,
    .max_operands = 2,
    .default_attrs = CompareAttrs{},
    .infer = infer_compare,
    .evaluate = evaluate_compare};

}  // namespace backcast::ops
