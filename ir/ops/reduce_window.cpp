// reduce_window: reduction over a sliding window; positions outside of x are left out.
#include "ir/ops/pointwise.h"
#include "ir/ops/reduction.h"

namespace backcast::ops {
namespace {

Type infer_reduce_window(const InferContext& c) {
  const TensorType& x = c.tensor(0);
  const ReduceWindowAttrs& a = c.attrs.as<ReduceWindowAttrs>();
  require_reducible(a.kind, x.element);
  for (const Ints* list : {&a.window, &a.strides, &a.dilation}) {
    require_length(list->size(), x.rank(), "a window list");
    for (int64_t value : *list)
      require(value >= 1 && value < INT32_MAX, "{} is not positive", value);
  }
  require_length(a.pad_low.size(), x.rank(), "pad_low");
  require_length(a.pad_high.size(), x.rank(), "pad_high");
  TensorType result{x.element, {}};
  for (size_t d = 0; d < x.shape.size(); ++d) {
    Dim window = Dim((a.window[d] - 1) * a.dilation[d] + 1);
    Dim room = x.shape[d] + a.pad_low[d] + a.pad_high[d] - window;
    require(!room.is_constant() || room.constant() >= 0,
            "the window of {} is larger than the padded extent of dimension {}", window.to_string(),
            d);
    result.shape.push_back(Dim::floor_div(room, a.strides[d]) + Dim(1));
  }
  return result;
}

Value evaluate_reduce_window(const EvalContext& c) {
  const ReduceWindowAttrs& a = c.node.attrs.as<ReduceWindowAttrs>();
  const Literal& x = c.tensor(0);
  TensorWriter out = result_writer(c);
  std::vector<int64_t> low = c.evaluate(a.pad_low), strides = row_major_strides(x.shape());
  visit_compute_type(x.element(), [&]<class T>(T) {
    int64_t i = 0;
    for (Odometer at(out.shape()); !at.done(); at.next()) {
      Running<T> running(a.kind);
      for (Odometer k(a.window); !k.done(); k.next()) {
        int64_t from = 0;
        bool inside = true;
        for (size_t d = 0; d < strides.size(); ++d) {
          int64_t position = at[d] * a.strides[d] + k[d] * a.dilation[d] - low[d];
          inside = inside && position >= 0 && position < x.shape()[d];
          from += position * strides[d];
        }
        if (inside) running.add(element<T>(x, from));
      }
      out.set(i++, running.value());
    }
  });
  return out.finish();
}

}  // namespace

const OpDef reduce_window = {
    .name = "reduce_window",
    .documentation = "reduction over a sliding window; positions outside of x are left out.",
    .min_operands = 1,
    .max_operands = 1,
    .default_attrs = ReduceWindowAttrs{},
    .infer = infer_reduce_window,
    .evaluate = evaluate_reduce_window};

}  // namespace backcast::ops
