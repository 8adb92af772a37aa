// broadcast: operand dimension i becomes result dimension dims[i]; an extent of 1 is repeated, and
// so is everything along the dimensions of the result that are not in dims.
#include "ir/ops/movement.h"
#include "ir/ops/ops.h"
#include "ir/ops/shape_rules.h"
#include "ir/ops/val.h"

namespace backcast::ops {
namespace {

Type infer_broadcast(const InferContext& context) {
  const BroadcastAttrs& attrs = context.attrs.as<BroadcastAttrs>();
  const TensorType& x = context.tensor(0);
  require_shape(attrs.shape, context.module.symbols, "shape");
  require_length(attrs.dims.size(), x.rank(), "dims");
  require_increasing(attrs.dims, static_cast<int64_t>(attrs.shape.size()), "dims");
  for (size_t i = 0; i < x.shape.size(); ++i) {
    const Dim& extent = attrs.shape[static_cast<size_t>(attrs.dims[i])];
    if (!(x.shape[i] == extent) && !(x.shape[i] == Dim(1))) {
      fail("dimension {} of operand {} cannot be broadcast to dimension {} of {}", i, to_string(x),
           attrs.dims[i], to_string(attrs.shape));
    }
  }
  return TensorType{x.element, attrs.shape};
}

Value evaluate_broadcast(const EvalContext& context) {
  const BroadcastAttrs& attrs = context.node.attrs.as<BroadcastAttrs>();
  const Literal& x = context.tensor(0);
  std::vector<int64_t> shape = context.evaluate(attrs.shape);
  const std::vector<int64_t> from = row_major_strides(x.shape());
  std::vector<int64_t> strides(shape.size(), 0);
  for (size_t i = 0; i < from.size(); ++i) {
    if (x.shape()[i] != 1) strides[static_cast<size_t>(attrs.dims[i])] = from[i];
  }
  return strided_copy(x, std::move(shape), 0, strides);
}

std::vector<Adjoint> gradient_of_broadcast(GradientContext& context) {
  const BroadcastAttrs& attrs = context.node.attrs.as<BroadcastAttrs>();
  const Shape from = context.type(0).shape;
  Ints axes;
  size_t next = 0;
  for (int64_t d = 0; d < static_cast<int64_t>(attrs.shape.size()); ++d) {
    const bool kept = next < attrs.dims.size() && attrs.dims[next] == d;
    if (!kept || !(from[next] == attrs.shape[static_cast<size_t>(d)])) axes.push_back(d);
    if (kept) ++next;
  }
  return {backcast::reshape(sum(Val(context.builder, context.seed()), axes), from)};
}

}  // namespace

const OpDef broadcast = {
    .name = "broadcast",
    .documentation =
        "The operand repeated to `shape`: its dimension i is dimension dims[i] of the "
        "result, with the same extent or 1.",
    .min_operands = 1,
    .max_operands = 1,
    .default_attrs = BroadcastAttrs{},
    .infer = infer_broadcast,
    .evaluate = evaluate_broadcast,
    .gradient = gradient_of_broadcast,
};

}  // namespace backcast::ops
