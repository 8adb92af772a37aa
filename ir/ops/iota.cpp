// iota: y[..., i, ...] = i along the axis.
#include "ir/ops/pointwise.h"

namespace backcast::ops {
namespace {

Type infer_iota(const InferContext& c) {
  const IotaAttrs& attrs = c.attrs.as<IotaAttrs>();
  require_axis(attrs.axis, static_cast<int64_t>(attrs.shape.size()));
  for (const Dim& extent : attrs.shape) require_extent(extent);
  require(attrs.element != ElementType::boolean, "cannot count in bools");
  return TensorType{attrs.element, attrs.shape};
}

Value evaluate_iota(const EvalContext& c) {
  TensorWriter out = result_writer(c);
  size_t axis = static_cast<size_t>(c.node.attrs.as<IotaAttrs>().axis);
  int64_t i = 0;
  for (Odometer at(out.shape()); !at.done(); at.next()) out.set(i++, at[axis]);
  return out.finish();
}

}  // namespace

const OpDef iota = {.name = "iota",
                    .documentation = "y[..., i, ...] = i along the axis.",
                    .min_operands = 0,
                    .max_operands = 0,
                    .default_attrs = IotaAttrs{},
                    .infer = infer_iota,
                    .evaluate = evaluate_iota};

}  // namespace backcast::ops
