// transpose: result dimension i is operand dimension permutation[i].
#include "ir/ops/movement.h"
#include "ir/ops/ops.h"
#include "ir/ops/shape_rules.h"

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
    .gradient = no_gradient("not differentiated"),
};

}  // namespace backcast::ops
