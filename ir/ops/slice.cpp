// slice: elements start, start + stride, ... below limit of every dimension.
#include "ir/ops/pointwise.h"

namespace backcast::ops {
namespace {

Type infer_slice(const InferContext& c) {
  const TensorType& x = c.tensor(0);
  const SliceAttrs& attrs = c.attrs.as<SliceAttrs>();
  require_length(attrs.start.size(), x.rank(), "start");
  require_length(attrs.limit.size(), x.rank(), "limit");
  require_length(attrs.stride.size(), x.rank(), "stride");
  TensorType result{x.element, {}};
  for (size_t d = 0; d < x.shape.size(); ++d) {
    const Dim& start = attrs.start[d];
    const Dim& limit = attrs.limit[d];
    require(attrs.stride[d] >= 1, "stride {} is not positive", attrs.stride[d]);
    const auto known = [](const Dim& a, const Dim& b) {
      return !(a - b).is_constant() || (a - b).constant() <= 0;
    };
    require(known(0, start) && known(start, limit) && known(limit, x.shape[d]),
            "cannot cut {}..{} out of the extent {}", start.to_string(), limit.to_string(),
            x.shape[d].to_string());
    result.shape.push_back(Dim::ceil_div(limit - start, attrs.stride[d]));
  }
  return result;
}

Value evaluate_slice(const EvalContext& c) {
  const SliceAttrs& attrs = c.node.attrs.as<SliceAttrs>();
  TensorWriter out = result_writer(c);
  const Literal& x = c.tensor(0);
  std::vector<int64_t> strides = row_major_strides(x.shape()), start = c.evaluate(attrs.start);
  int64_t base = 0;
  for (size_t d = 0; d < strides.size(); ++d) {
    base += start[d] * strides[d];
    strides[d] *= attrs.stride[d];
  }
  int64_t i = 0;
  for (Odometer at(out.shape()); !at.done(); at.next()) out.copy(i++, x, base + at.flat(strides));
  return out.finish();
}

}  // namespace

const OpDef slice = {
    .name = "slice",
    .documentation = "elements start, start + stride, ... below limit of every dimension.",
    .min_operands = 1,
    .max_operands = 1,
    .default_attrs = SliceAttrs{},
    .infer = infer_slice,
    .evaluate = evaluate_slice};

}  // namespace backcast::ops
