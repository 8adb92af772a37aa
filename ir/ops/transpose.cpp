// transpose: result dimension i is operand dimension permutation[i].
#include "ir/ops/movement.h"
#include "ir/ops/ops.h"
#include "ir/ops/shape_rules.h"
#include "ir/ops/val.h"

namespace backcast::ops {
namespace {

Type infer_transpose(const InferContext& context) {
  const Ints& permutation = context.attrs.as<TransposeAttrs>().permutation;
  const TensorType& x = context.tensor(0);
  require_length(permutation.size(), x.rank(), "permutation");
  require_axes(permutation, x.rank(), "permutation");
  TensorType result{x.element, {}};
  for (const int64_t axis : permutation) {
    result.shape.push_back(x.shape[static_cast<size_t>(axis)]);
  }
  return result;
}

Value evaluate_transpose(const EvalContext& context) {
  const Literal& x = context.tensor(0);
  const std::vector<int64_t> from = row_major_strides(x.shape());
  std::vector<int64_t> shape, strides;
  for (const int64_t axis : context.node.attrs.as<TransposeAttrs>().permutation) {
    shape.push_back(x.shape()[static_cast<size_t>(axis)]);
    strides.push_back(from[static_cast<size_t>(axis)]);
  }
  return strided_copy(x, std::move(shape), 0, strides);
}

std::vector<Adjoint> gradient_of_transpose(GradientContext& context) {
  const Ints& permutation = context.node.attrs.as<TransposeAttrs>().permutation;
  Ints inverse(permutation.size());
  for (size_t i = 0; i < permutation.size(); ++i) {
    inverse[static_cast<size_t>(permutation[i])] = static_cast<int64_t>(i);
  }
  return {backcast::transpose(Val(context.builder, context.seed()), inverse)};
}

}  // namespace

const OpDef transpose = {
    .name = "transpose",
    .documentation =
        "The operand with its dimensions reordered: dimension i of the result is "
        "dimension permutation[i] of the operand.",
    .min_operands = 1,
    .max_operands = 1,
    .default_attrs = TransposeAttrs{},
    .infer = infer_transpose,
    .evaluate = evaluate_transpose,
    .gradient = gradient_of_transpose,
};

}  // namespace backcast::ops
