// reduce_window: y[i…] = the reduction of x over the window that starts at i · stride - pad_low,
// its elements `dilation` apart; positions outside x are left out. Extents as in conv. Floats
// accumulate in double, integers wrap around.
#include <algorithm>

#include "ir/ops/ops.h"
#include "ir/ops/reduction.h"
#include "ir/ops/taps.h"
#include "ir/ops/walk.h"

namespace backcast::ops {
namespace {

Type infer_reduce_window(const InferContext& context) {
  const ReduceWindowAttrs& attrs = context.attrs.as<ReduceWindowAttrs>();
  require_reducible(context, attrs.kind);
  const TensorType& x = context.tensor(0);
  require_length(attrs.window.size(), x.rank(), "window");
  require_length(attrs.strides.size(), x.rank(), "strides");
  require_length(attrs.dilation.size(), x.rank(), "dilation");
  require_length(attrs.pad_low.size(), x.rank(), "pad_low");
  require_length(attrs.pad_high.size(), x.rank(), "pad_high");
  require_values(attrs.window, 1, "window");
  require_values(attrs.strides, 1, "strides");
  require_values(attrs.dilation, 1, "dilation");
  TensorType result{x.element, {}};
  for (size_t d = 0; d < x.shape.size(); ++d) {
    const WindowDimension dimension{.input = x.shape[d],
                                    .window = attrs.window[d],
                                    .stride = attrs.strides[d],
                                    .pad_low = attrs.pad_low[d],
                                    .pad_high = attrs.pad_high[d],
                                    .window_dilation = attrs.dilation[d]};
    result.shape.push_back(window_positions(dimension, context.module.symbols,
                                            fmt::format("dimension {} of {}", d, to_string(x))));
  }
  return result;
}

template <class Codec>
void reduce_windows(const EvalContext& context, const std::vector<StaticWindow>& windows,
                    ResultBuffer& result) {
  using T = typename Codec::Value;
  const ReduceWindowAttrs& attrs = context.node.attrs.as<ReduceWindowAttrs>();
  const Literal& x = context.tensor(0);
  const std::unique_ptr<T[]> values = make_array<T>(result.count());
  std::fill_n(values.get(), result.count(), reduction_identity<T>(attrs.kind));
  const std::vector<int64_t> from_strides = row_major_strides(x.shape());
  const std::vector<int64_t> to_strides = row_major_strides(result.shape());
  const typename Codec::Stored* from = x.data<typename Codec::Stored>();
  std::vector<int64_t> extents(windows.size()), reads(windows.size()), writes(windows.size());
  each_window_element(windows, attrs.window, [&](const WindowElement& element) {
    int64_t read = 0, write = 0;
    for (size_t d = 0; d < windows.size(); ++d) {
      const Taps& taps = element.taps[d];
      extents[d] = taps.count;
      reads[d] = from_strides[d] * taps.input_step;
      writes[d] = to_strides[d] * taps.output_step;
      read += from_strides[d] * taps.input;
      write += to_strides[d] * taps.output;
    }
    Walk<2> walk(extents, {reads, writes});
    visit_reduction<T>(attrs.kind, [&](auto combine) {
      walk.each({read, write}, [&](const auto& at) {
        values[at[1]] = combine(values[at[1]], Codec::load(from[at[0]]));
      });
    });
  });
  encode<Codec>(values.get(), result);
}

Value evaluate_reduce_window(const EvalContext& context) {
  const ReduceWindowAttrs& attrs = context.node.attrs.as<ReduceWindowAttrs>();
  const Literal& x = context.tensor(0);
  ResultBuffer result(x.element(), context.result_shape());
  const std::vector<int64_t> low = context.evaluate(attrs.pad_low);
  require_pads(low);
  std::vector<StaticWindow> windows;
  for (size_t d = 0; d < low.size(); ++d) {
    windows.push_back({.input = x.shape()[d],
                       .output = result.shape()[d],
                       .stride = attrs.strides[d],
                       .pad_low = low[d],
                       .window_dilation = attrs.dilation[d]});
  }
  if (result.count() == 0) return result.finish();
  visit_codec(x.element(),
              [&](auto codec) { reduce_windows<decltype(codec)>(context, windows, result); });
  return result.finish();
}

}  // namespace

const OpDef reduce_window = {
    .name = "reduce_window",
    .documentation =
        "The reduction over a window that slides over every dimension; positions "
        "outside the operand are left out.",
    .min_operands = 1,
    .max_operands = 1,
    .default_attrs = ReduceWindowAttrs{},
    .infer = infer_reduce_window,
    .evaluate = evaluate_reduce_window,
    .gradient = no_gradient("not differentiated"),
};

}  // namespace backcast::ops
