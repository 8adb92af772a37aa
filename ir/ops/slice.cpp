// slice: y[i…] = x[start + i · stride…], as many positions as lie below limit:
// ceil((limit - start) / stride) with 0 <= start <= limit <= extent and stride >= 1.
#include "ir/ops/movement.h"
#include "ir/ops/ops.h"
#include "ir/ops/shape_rules.h"
#include "ir/ops/val.h"

namespace backcast::ops {
namespace {

Type infer_slice(const InferContext& context) {
  const SliceAttrs& attrs = context.attrs.as<SliceAttrs>();
  const TensorType& x = context.tensor(0);
  const SymbolRanges& ranges = context.module.symbols;
  require_length(attrs.start.size(), x.rank(), "start");
  require_length(attrs.limit.size(), x.rank(), "limit");
  require_length(attrs.stride.size(), x.rank(), "stride");
  TensorType result{x.element, {}};
  for (size_t d = 0; d < x.shape.size(); ++d) {
    const Dim& start = attrs.start[d];
    const Dim& limit = attrs.limit[d];
    if (always_negative(start, ranges) || always_negative(limit - start, ranges) ||
        always_negative(x.shape[d] - limit, ranges)) {
      fail("slice {} to {} of dimension {} does not lie inside {}", start.to_string(),
           limit.to_string(), d, to_string(x));
    }
    if (attrs.stride[d] < 1) fail("stride {} of dimension {} is below 1", attrs.stride[d], d);
    result.shape.push_back(Dim::ceil_div(limit - start, attrs.stride[d]));
  }
  return result;
}

Value evaluate_slice(const EvalContext& context) {
  const SliceAttrs& attrs = context.node.attrs.as<SliceAttrs>();
  const Literal& x = context.tensor(0);
  const std::vector<int64_t> start = context.evaluate(attrs.start);
  const std::vector<int64_t> limit = context.evaluate(attrs.limit);
  std::vector<int64_t> shape = context.result_shape();
  std::vector<int64_t> strides = row_major_strides(x.shape());
  int64_t first = 0;
  bool empty = false;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (start[d] < 0 || limit[d] < start[d] || limit[d] > x.shape()[d]) {
      fail("slice {} to {} of dimension {} does not lie inside {}", start[d], limit[d], d,
           to_string(x.type()));
    }
    empty |= shape[d] == 0;
    if (!empty) first += start[d] * strides[d];
    strides[d] = scaled_stride(strides[d], attrs.stride[d], shape[d]);
  }
  return strided_copy(x, std::move(shape), empty ? 0 : first, strides);
}

std::vector<Adjoint> gradient_of_slice(GradientContext& context) {
  // Back to their places, with zeros in between.
  const SliceAttrs& attrs = context.node.attrs.as<SliceAttrs>();
  const Val seed(context.builder, context.seed());
  const Shape shape = context.type(0).shape;
  PadAttrs pads;
  for (size_t d = 0; d < shape.size(); ++d) {
    const Dim extent = seed.shape()[d];
    const Dim gaps = gaps_between(extent, attrs.stride[d] - 1, context.builder.module().symbols);
    pads.low.push_back(attrs.start[d]);
    pads.high.push_back(shape[d] - attrs.start[d] - extent - gaps);
    pads.interior.push_back(attrs.stride[d] - 1);
  }
  const ValueId zero = context.builder.scalar(seed.element(), 0);
  return {seed.emit(pad, {zero}, pads)};
}

}  // namespace

const OpDef slice = {
    .name = "slice",
    .documentation = "The elements start, start + stride, … below limit, per dimension.",
    .min_operands = 1,
    .max_operands = 1,
    .default_attrs = SliceAttrs{},
    .infer = infer_slice,
    .evaluate = evaluate_slice,
    .gradient = gradient_of_slice,
};

}  // namespace backcast::ops
