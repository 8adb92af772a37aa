// reshape: the same elements in row-major order under another shape.
#include <algorithm>

#include "ir/ops/ops.h"
#include "ir/ops/shape_rules.h"
#include "ir/ops/val.h"

namespace backcast::ops {
namespace {

Type infer_reshape(const InferContext& context) {
  const ReshapeAttrs& attrs = context.attrs.as<ReshapeAttrs>();
  const TensorType& x = context.tensor(0);
  require_shape(attrs.shape, context.module.symbols, "shape");
  const TensorType result{x.element, attrs.shape};
  const Dim before = x.element_count();
  const Dim after = result.element_count();
  if (!(before == after)) {
    fail("{} has {} elements and cannot be reshaped to {}, which has {}", to_string(x),
         before.to_string(), to_string(attrs.shape), after.to_string());
  }
  return result;
}

Value evaluate_reshape(const EvalContext& context) {
  const Literal& x = context.tensor(0);
  std::vector<int64_t> shape = context.evaluate(context.node.attrs.as<ReshapeAttrs>().shape);
  ResultBuffer result(x.element(), std::move(shape));
  if (result.count() != x.element_count()) {
    fail("{} elements cannot be reshaped to {}", x.element_count(),
         to_string(Shape(result.shape().begin(), result.shape().end())));
  }
  // A copy: sharing the bytes would chain the owners of many reshapes in a row.
  std::copy(x.bytes().begin(), x.bytes().end(), result.data<std::byte>());
  return result.finish();
}

std::vector<Adjoint> gradient_of_reshape(GradientContext& context) {
  return {backcast::reshape(Val(context.builder, context.seed()), context.type(0).shape)};
}

}  // namespace

const OpDef reshape = {
    .name = "reshape",
    .documentation = "The same elements, in row-major order, under another shape.",
    .min_operands = 1,
    .max_operands = 1,
    .default_attrs = ReshapeAttrs{},
    .infer = infer_reshape,
    .evaluate = evaluate_reshape,
    .gradient = gradient_of_reshape,
};

}  // namespace backcast::ops
