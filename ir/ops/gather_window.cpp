// gather_window: y[o] = the element of x that window o chose, by its number as arg_window counts
// them; zero for "none" and for positions outside x. Linear in x; scatter_window is its adjoint.
#include "ir/ops/ops.h"
#include "ir/ops/val.h"
#include "ir/ops/window_rules.h"

namespace backcast::ops {
namespace {

Type infer_gather_window(const InferContext& context) {
  const GatherWindowAttrs& attrs = context.attrs.as<GatherWindowAttrs>();
  const TensorType& x = context.tensor(0);
  check_positions(context, 1, x, Windowing::from(attrs));
  return TensorType{x.element, context.tensor(1).shape};
}

Value evaluate_gather_window(const EvalContext& context) {
  const GatherWindowAttrs& attrs = context.node.attrs.as<GatherWindowAttrs>();
  const Literal& x = context.tensor(0);
  const Literal& positions = context.tensor(1);
  ResultBuffer result(x.element(), context.result_shape());
  if (result.count() == 0) return result.finish();
  const std::vector<StaticWindow> windows =
      static_windows(context, Windowing::from(attrs), x.shape(), result.shape());
  visit_word(x.element(), [&](auto word) {
    using Word = decltype(word);
    const Word* from = x.data<Word>();
    Word* to = result.data<Word>();
    visit_positions(positions.element(), [&](auto position) {
      const auto* chosen = positions.data<decltype(position)>();
      each_window_pair(windows, attrs.window, x.shape(), result.shape(),
                       [&](int64_t number, int64_t input, int64_t output) {
                         if (chosen[output] == number) to[output] = from[input];
                       });
    });
  });
  return result.finish();
}

std::vector<Adjoint> gradient_of_gather_window(GradientContext& context) {
  const GatherWindowAttrs& a = context.node.attrs.as<GatherWindowAttrs>();
  const ScatterWindowAttrs attrs{
      context.type(0).shape, a.window, a.strides, a.dilation, a.pad_low, a.pad_high};
  return {
      Val(context.builder, context.seed()).emit(ops::scatter_window, {context.operand(1)}, attrs)};
}

}  // namespace

const OpDef gather_window = {
    .name = "gather_window",
    .documentation =
        "For each window the element of the first operand that the second, numbers as "
        "arg_window gives them, says; zero where it says none.",
    .min_operands = 2,
    .max_operands = 2,
    .default_attrs = GatherWindowAttrs{},
    .infer = infer_gather_window,
    .evaluate = evaluate_gather_window,
    .gradient = gradient_of_gather_window,
};

}  // namespace backcast::ops
