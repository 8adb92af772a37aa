// arg_window: the number, within the window and row-major, of the first maximum or minimum of each
// window; the first NaN wins. A window without any element of the operand gives the number of its
// elements. One byte per window (two or four when the window is larger) is all that the gradient
// of a pooling needs to keep.
#include <algorithm>

#include "ir/ops/ops.h"
#include "ir/ops/window_rules.h"

namespace backcast::ops {
namespace {

Type infer_arg_window(const InferContext& context) {
  const ReduceWindowAttrs& attrs = context.attrs.as<ReduceWindowAttrs>();
  if (attrs.kind != Reduction::max && attrs.kind != Reduction::min) {
    fail("arg_window finds max or min, not {}", enum_name(attrs.kind));
  }
  const Shape shape = windows_over(context, context.tensor(0), Windowing::from(attrs));
  return TensorType{position_element(attrs.window), shape};
}

template <class T>
bool is_better(Reduction kind, T value, T best) {
  if (best != best) return false;
  if (value != value) return true;
  return kind == Reduction::max ? best < value : value < best;
}

template <class Codec, class Position>
void find_positions(const EvalContext& context, ResultBuffer& result) {
  using T = typename Codec::Value;
  const ReduceWindowAttrs& attrs = context.node.attrs.as<ReduceWindowAttrs>();
  const Literal& x = context.tensor(0);
  const Position none = static_cast<Position>(window_elements(attrs.window));
  const std::vector<StaticWindow> windows =
      static_windows(context, Windowing::from(attrs), x.shape(), result.shape());
  const std::unique_ptr<T[]> best = make_array<T>(result.count());
  const typename Codec::Stored* from = x.data<typename Codec::Stored>();
  Position* to = result.data<Position>();
  std::fill_n(to, result.count(), none);
  each_window_pair(windows, attrs.window, x.shape(), result.shape(),
                   [&](int64_t number, int64_t input, int64_t output) {
                     const T value = Codec::load(from[input]);
                     if (to[output] != none && !is_better(attrs.kind, value, best[output])) return;
                     best[output] = value;
                     to[output] = static_cast<Position>(number);
                   });
}

Value evaluate_arg_window(const EvalContext& context) {
  const ElementType element = context.node.type.tensor().element;
  ResultBuffer result(element, context.result_shape());
  if (result.count() == 0) return result.finish();
  visit_codec(context.tensor(0).element(), [&](auto codec) {
    visit_positions(element, [&](auto position) {
      find_positions<decltype(codec), decltype(position)>(context, result);
    });
  });
  return result.finish();
}

}  // namespace

const OpDef arg_window = {
    .name = "arg_window",
    .documentation =
        "The number within the window of the first maximum or minimum of each window of "
        "reduce_window; the number of the window's elements where it has none.",
    .min_operands = 1,
    .max_operands = 1,
    .default_attrs = ReduceWindowAttrs{},
    .infer = infer_arg_window,
    .evaluate = evaluate_arg_window,
    .gradient = zero_gradient("positions"),
};

}  // namespace backcast::ops
