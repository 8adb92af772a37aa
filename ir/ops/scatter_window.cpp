// scatter_window: y[p] = Σ values[o] over the windows o that chose element p, by its number as
// arg_window counts them. Linear in the values; gather_window is its adjoint. Floats accumulate in
// double, integers wrap around.
#include <algorithm>

#include "ir/ops/ops.h"
#include "ir/ops/val.h"
#include "ir/ops/window_rules.h"

namespace backcast::ops {
namespace {

Type infer_scatter_window(const InferContext& context) {
  const ScatterWindowAttrs& attrs = context.attrs.as<ScatterWindowAttrs>();
  const TensorType& values = require_kind(context, 0, kNumeric);
  require_shape(attrs.shape, context.module.symbols, "the shape");
  const TensorType result{values.element, attrs.shape};
  check_positions(context, 1, result, Windowing::from(attrs));
  if (!(values.shape == context.tensor(1).shape)) {
    fail("operand 0, the values, must have the shape of the positions {} and is {}",
         to_string(context.tensor(1)), to_string(values));
  }
  return result;
}

template <class Codec, class Position>
void add_values(const EvalContext& context, ResultBuffer& result) {
  using T = typename Codec::Value;
  const ScatterWindowAttrs& attrs = context.node.attrs.as<ScatterWindowAttrs>();
  const Literal& values = context.tensor(0);
  const Position* chosen = context.tensor(1).data<Position>();
  const typename Codec::Stored* from = values.data<typename Codec::Stored>();
  const std::unique_ptr<T[]> sums = make_array<T>(result.count());
  std::fill_n(sums.get(), result.count(), T{0});
  const std::vector<StaticWindow> windows =
      static_windows(context, Windowing::from(attrs), result.shape(), values.shape());
  each_window_pair(windows, attrs.window, result.shape(), values.shape(),
                   [&](int64_t number, int64_t element, int64_t window) {
                     if (chosen[window] != number) return;
                     sums[element] = wrapping_add(sums[element], Codec::load(from[window]));
                   });
  encode<Codec>(sums.get(), result);
}

Value evaluate_scatter_window(const EvalContext& context) {
  const Literal& values = context.tensor(0);
  ResultBuffer result(values.element(), context.result_shape());
  if (values.element_count() == 0 || result.count() == 0) return result.finish();
  visit_codec_of<kNumeric>(values.element(), [&](auto codec) {
    visit_positions(context.tensor(1).element(), [&](auto position) {
      add_values<decltype(codec), decltype(position)>(context, result);
    });
  });
  return result.finish();
}

std::vector<Adjoint> gradient_of_scatter_window(GradientContext& context) {
  const ScatterWindowAttrs& a = context.node.attrs.as<ScatterWindowAttrs>();
  const GatherWindowAttrs attrs{a.window, a.strides, a.dilation, a.pad_low, a.pad_high};
  return {
      Val(context.builder, context.seed()).emit(ops::gather_window, {context.operand(1)}, attrs)};
}

}  // namespace

const OpDef scatter_window = {
    .name = "scatter_window",
    .documentation =
        "The operand of windows, with each value of the first operand added to the "
        "element that its window chose: the second operand, numbers as arg_window gives them.",
    .min_operands = 2,
    .max_operands = 2,
    .default_attrs = ScatterWindowAttrs{},
    .infer = infer_scatter_window,
    .evaluate = evaluate_scatter_window,
    .gradient = gradient_of_scatter_window,
};

}  // namespace backcast::ops
