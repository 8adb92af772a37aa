// reverse: y[…, i, …] = x[…, extent - 1 - i, …] along every axis of `axes`.
#include "ir/ops/movement.h"
#include "ir/ops/ops.h"
#include "ir/ops/shape_rules.h"
#include "ir/ops/val.h"

namespace backcast::ops {
namespace {

Type infer_reverse(const InferContext& context) {
  const TensorType& x = context.tensor(0);
  require_axes(context.attrs.as<ReverseAttrs>().axes, x.rank(), "axes");
  return x;
}

Value evaluate_reverse(const EvalContext& context) {
  const Literal& x = context.tensor(0);
  if (x.element_count() == 0) return x;
  std::vector<int64_t> strides = row_major_strides(x.shape());
  int64_t start = 0;
  for (const int64_t axis : context.node.attrs.as<ReverseAttrs>().axes) {
    const size_t d = static_cast<size_t>(axis);
    start += (x.shape()[d] - 1) * strides[d];
    strides[d] = -strides[d];
  }
  return strided_copy(x, x.shape(), start, strides);
}

std::vector<Adjoint> gradient_of_reverse(GradientContext& context) {
  const Val seed(context.builder, context.seed());
  return {seed.emit(reverse, {}, context.node.attrs)};
}

}  // namespace

const OpDef reverse = {
    .name = "reverse",
    .documentation = "The operand with the order of its elements reversed along `axes`.",
    .min_operands = 1,
    .max_operands = 1,
    .default_attrs = ReverseAttrs{},
    .infer = infer_reverse,
    .evaluate = evaluate_reverse,
    .gradient = gradient_of_reverse,
};

}  // namespace backcast::ops
