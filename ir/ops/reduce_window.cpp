// reduce_window: y[i…] = the reduction of x over the window that starts at i · stride - pad_low,
// its elements `dilation` apart; positions outside x are left out. Extents as in conv. Floats
// accumulate in double, integers wrap around.
#include <algorithm>

#include "ir/ops/ops.h"
#include "ir/ops/reduction.h"
#include "ir/ops/val.h"
#include "ir/ops/window_rules.h"

namespace backcast::ops {
namespace {

Type infer_reduce_window(const InferContext& context) {
  const ReduceWindowAttrs& attrs = context.attrs.as<ReduceWindowAttrs>();
  require_reducible(context, attrs.kind);
  const TensorType& x = context.tensor(0);
  return TensorType{x.element, windows_over(context, x, Windowing::from(attrs))};
}

template <class Codec>
void reduce_windows(const EvalContext& context, ResultBuffer& result) {
  using T = typename Codec::Value;
  const ReduceWindowAttrs& attrs = context.node.attrs.as<ReduceWindowAttrs>();
  const Literal& x = context.tensor(0);
  const std::vector<StaticWindow> windows =
      static_windows(context, Windowing::from(attrs), x.shape(), result.shape());
  const std::unique_ptr<T[]> values = make_array<T>(result.count());
  std::fill_n(values.get(), result.count(), reduction_identity<T>(attrs.kind));
  const typename Codec::Stored* from = x.data<typename Codec::Stored>();
  visit_reduction<T>(attrs.kind, [&](auto combine) {
    each_window_pair(windows, attrs.window, x.shape(), result.shape(),
                     [&](int64_t, int64_t input, int64_t output) {
                       values[output] = combine(values[output], Codec::load(from[input]));
                     });
  });
  encode<Codec>(values.get(), result);
}

Value evaluate_reduce_window(const EvalContext& context) {
  const Literal& x = context.tensor(0);
  ResultBuffer result(x.element(), context.result_shape());
  if (result.count() == 0) return result.finish();
  visit_codec(x.element(), [&](auto codec) { reduce_windows<decltype(codec)>(context, result); });
  return result.finish();
}

/// Whether windows lie side by side, so that each element is in one window at most.
bool side_by_side(const ReduceWindowAttrs& attrs) {
  for (size_t d = 0; d < attrs.window.size(); ++d) {
    if (attrs.window[d] != attrs.strides[d]) return false;
    if (attrs.window[d] > 1 && attrs.dilation[d] > 1) return false;
  }
  return true;
}

/// Every value repeated over its window; what no window reaches is zero.
Val repeat_over_windows(const Val& seed, const Shape& x, const ReduceWindowAttrs& attrs) {
  Shape spread, merged;
  Ints dims;
  PadAttrs pads;
  bool padded = false;
  for (size_t d = 0; d < x.size(); ++d) {
    dims.push_back(static_cast<int64_t>(spread.size()));
    spread.push_back(seed.shape()[d]);
    if (attrs.window[d] > 1) spread.push_back(attrs.window[d]);
    merged.push_back(seed.shape()[d] * Dim(attrs.window[d]));
    pads.low.push_back(Dim(0) - attrs.pad_low[d]);
    pads.high.push_back(x[d] - merged[d] + attrs.pad_low[d]);
    padded = padded || !(pads.low[d] == Dim(0)) || !(pads.high[d] == Dim(0));
  }
  pads.interior.assign(x.size(), 0);
  Val repeated = seed;
  if (spread.size() > x.size()) {
    repeated = backcast::reshape(backcast::broadcast(seed, spread, dims), merged);
  }
  if (!padded) return repeated;
  return repeated.emit(ops::pad, {seed.builder().scalar(seed.element(), 0)}, pads);
}

/// Element p is read by the windows o with o · stride + k · dilation = p + pad_low: a sum over a
/// window that slides by one over the values spread by the strides.
Val sum_over_windows(const Val& seed, const Shape& x, const ReduceWindowAttrs& attrs) {
  const SymbolRanges& ranges = seed.builder().module().symbols;
  PadAttrs spread;
  ReduceWindowAttrs back = attrs;
  bool strided = false;
  for (size_t d = 0; d < x.size(); ++d) {
    spread.low.push_back(0);
    spread.high.push_back(0);
    spread.interior.push_back(attrs.strides[d] - 1);
    strided = strided || attrs.strides[d] > 1;
    const Dim reach = (attrs.window[d] - 1) * attrs.dilation[d];
    back.strides[d] = 1;
    back.pad_low[d] = reach - attrs.pad_low[d];
    back.pad_high[d] = x[d] + attrs.pad_low[d] - dilated(seed.shape()[d], attrs.strides[d], ranges);
  }
  const ValueId zero = seed.builder().scalar(seed.element(), 0);
  const Val values = strided ? seed.emit(ops::pad, {zero}, spread) : seed;
  return values.emit(ops::reduce_window, {}, back);
}

std::vector<Adjoint> gradient_of_reduce_window(GradientContext& context) {
  const ReduceWindowAttrs& attrs = context.node.attrs.as<ReduceWindowAttrs>();
  const Val seed(context.builder, context.seed());
  const Shape x = context.type(0).shape;
  for (const Shape& shape : {x, seed.shape()}) {
    if (std::find(shape.begin(), shape.end(), Dim(0)) != shape.end()) return {};
  }
  switch (attrs.kind) {
    case Reduction::sum:
      return {side_by_side(attrs) ? repeat_over_windows(seed, x, attrs)
                                  : sum_over_windows(seed, x, attrs)};
    case Reduction::max:
    case Reduction::min: {
      const Val positions =
          Val(context.builder, context.operand(0)).emit(ops::arg_window, {}, attrs);
      return {seed.emit(ops::scatter_window, {positions},
                        ScatterWindowAttrs{x, attrs.window, attrs.strides, attrs.dilation,
                                           attrs.pad_low, attrs.pad_high})};
    }
    default:
      throw CompileError(context.node.loc,
                         fmt::format("reduce_window has no gradient for {}: no operator of ONNX "
                                     "uses it on floats",
                                     enum_name(attrs.kind)));
  }
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
    .gradient = gradient_of_reduce_window,
};

}  // namespace backcast::ops
