// reverse: the elements in opposite order along the axes.
#include "ir/ops/pointwise.h"

namespace backcast::ops {
namespace {

Type infer_reverse(const InferContext& c) {
  require_axes(c.attrs.as<ReverseAttrs>().axes, c.tensor(0).rank());
  return c.tensor(0);
}

Value evaluate_reverse(const EvalContext& c) {
  TensorWriter out = result_writer(c);
  const Literal& x = c.tensor(0);
  std::vector<int64_t> strides = row_major_strides(x.shape());
  int64_t base = 0;
  for (int64_t axis : c.node.attrs.as<ReverseAttrs>().axes) {
    size_t a = static_cast<size_t>(axis);
    base += (x.shape()[a] - 1) * strides[a];
    strides[a] = -strides[a];
  }
  int64_t i = 0;
  for (Odometer at(out.shape()); !at.done(); at.next()) out.copy(i++, x, base + at.flat(strides));
  return out.finish();
}

}  // namespace

const OpDef reverse = {.name = "reverse",
                       .documentation = "the elements in opposite order along the axes.",
                       .min_operands = 1,
                       .max_operands = 1,
                       .default_attrs = ReverseAttrs{},
                       .infer = infer_reverse,
                       .evaluate = evaluate_reverse};

}  // namespace backcast::ops
