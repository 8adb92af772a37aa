// broadcast: operand dimension i becomes result dimension dims[i]; extents of 1 stretch.
#include "ir/ops/pointwise.h"

namespace backcast::ops {
namespace {

Type infer_broadcast(const InferContext& c) {
  const BroadcastAttrs& attrs = c.attrs.as<BroadcastAttrs>();
  const TensorType& x = c.tensor(0);
  require_length(attrs.dims.size(), x.rank(), "dims");
  int64_t last = -1;
  for (size_t i = 0; i < attrs.dims.size(); ++i) {
    require_axis(attrs.dims[i], static_cast<int64_t>(attrs.shape.size()));
    require(attrs.dims[i] > last, "dims must increase");
    last = attrs.dims[i];
    const Dim& to = attrs.shape[static_cast<size_t>(last)];
    require(x.shape[i] == Dim(1) || x.shape[i] == to, "extent {} cannot be stretched to {}",
            x.shape[i].to_string(), to.to_string());
  }
  for (const Dim& extent : attrs.shape) require_extent(extent);
  return TensorType{x.element, attrs.shape};
}

Value evaluate_broadcast(const EvalContext& c) {
  TensorWriter out = result_writer(c);
  const Literal& x = c.tensor(0);
  const Ints& dims = c.node.attrs.as<BroadcastAttrs>().dims;
  std::vector<int64_t> from = row_major_strides(x.shape()), strides(out.shape().size(), 0);
  for (size_t i = 0; i < dims.size(); ++i) {
    if (x.shape()[i] != 1) strides[static_cast<size_t>(dims[i])] = from[i];
  }
  int64_t i = 0;
  for (Odometer at(out.shape()); !at.done(); at.next()) out.copy(i++, x, at.flat(strides));
  return out.finish();
}

}  // namespace

const OpDef broadcast = {
    .name = "broadcast",
    .documentation = "operand dimension i becomes result dimension dims[i]; extents of 1 stretch.",
    .min_operands = 1,
    .max_operands = 1,
    .default_attrs = BroadcastAttrs{},
    .infer = infer_broadcast,
    .evaluate = evaluate_broadcast};

}  // namespace backcast::ops
