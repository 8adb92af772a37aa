// pad: x with low and high elements of a scalar at the edges and interior ones between
// neighbours.
#include "ir/ops/pointwise.h"

namespace backcast::ops {
namespace {

Type infer_pad(const InferContext& c) {
  const TensorType& x = c.tensor(0);
  const PadAttrs& attrs = c.attrs.as<PadAttrs>();
  require(c.tensor(1) == TensorType{x.element, {}}, "the padding value is {}, not a scalar {}",
          to_string(c.tensor(1)), name_of(x.element));
  require_length(attrs.low.size(), x.rank(), "low");
  require_length(attrs.high.size(), x.rank(), "high");
  require_length(attrs.interior.size(), x.rank(), "interior");
  TensorType result{x.element, {}};
  for (size_t d = 0; d < x.shape.size(); ++d) {
    int64_t interior = attrs.interior[d];
    require(interior >= 0 && interior < INT32_MAX, "interior padding {} is out of range", interior);
    Dim between = x.shape[d] == Dim(0) ? Dim(0) : (x.shape[d] - Dim(1)) * Dim(interior);
    result.shape.push_back(x.shape[d] + between + attrs.low[d] + attrs.high[d]);
    require_extent(result.shape.back());
  }
  return result;
}

Value evaluate_pad(const EvalContext& c) {
  const PadAttrs& attrs = c.node.attrs.as<PadAttrs>();
  TensorWriter out = result_writer(c);
  const Literal& x = c.tensor(0);
  std::vector<int64_t> low = c.evaluate(attrs.low), strides = row_major_strides(x.shape());
  int64_t i = 0;
  for (Odometer at(out.shape()); !at.done(); at.next(), ++i) {
    int64_t from = 0;
    bool inside = true;
    for (size_t d = 0; inside && d < strides.size(); ++d) {
      int64_t position = at[d] - low[d], step = attrs.interior[d] + 1;
      inside = position >= 0 && position % step == 0 && position / step < x.shape()[d];
      from += position / step * strides[d];
    }
    out.copy(i, inside ? x : c.tensor(1), inside ? from : 0);
  }
  return out.finish();
}

}  // namespace

const OpDef pad = {.name = "pad",
                   .documentation =
                       "x with low and high elements of a scalar at the edges and interior ones "
                       "between neighbours.",
                   .min_operands = 2,
                   .max_operands = 2,
                   .default_attrs = PadAttrs{},
                   .infer = infer_pad,
                   .evaluate = evaluate_pad};

}  // namespace backcast::ops
