// scatter, gather's twin: x with windows of `updates` combined in, in row-major order of `updates`;
// a window that does not lie inside x is left out whole. Sums and products of floats accumulate in
// double and are rounded once. See ScatterAttrs for the dimension numbers.
#include "ir/ops/index_windows.h"
#include "ir/ops/ops.h"
#include "ir/ops/shape_rules.h"
#include "ir/ops/walk.h"

namespace backcast::ops {
namespace {

WindowNumbers numbers_of(const ScatterAttrs& attrs) {
  return {attrs.update_window_dims,           attrs.inserted_window_dims,
          attrs.input_batching_dims,          attrs.indices_batching_dims,
          attrs.scatter_dims_to_operand_dims, attrs.index_vector_dim};
}

Type infer_scatter(const InferContext& context) {
  const ScatterAttrs& attrs = context.attrs.as<ScatterAttrs>();
  const WindowNumbers numbers = numbers_of(attrs);
  check_window_numbers(context, numbers);
  require_same_element(context, 2, 0);
  const TensorType& x = context.tensor(0);
  const TensorType& updates = context.tensor(2);
  if (attrs.combiner == Combiner::add || attrs.combiner == Combiner::mul) {
    require_kind(context, 0, kNumeric);
  }
  if (updates.rank() != windowed_rank(context.tensor(1), numbers)) {
    fail("operand 2, the updates, must have {} dimensions and is {}",
         windowed_rank(context.tensor(1), numbers), to_string(updates));
  }
  const Shape places = place_shape(context.tensor(1).shape, attrs.index_vector_dim);
  const std::vector<size_t> kept = kept_dimensions(x.rank(), numbers);
  std::vector<bool> inside(updates.shape.size(), false);
  for (size_t i = 0; i < kept.size(); ++i) {
    const size_t d = static_cast<size_t>(attrs.update_window_dims[i]);
    inside[d] = true;
    if (always_negative(x.shape[kept[i]] - updates.shape[d], context.module.symbols)) {
      fail("window dimension {} of the updates {} is larger than dimension {} of {}", d,
           to_string(updates), kept[i], to_string(x));
    }
  }
  size_t next = 0;
  for (size_t d = 0; d < updates.shape.size(); ++d) {
    if (inside[d]) continue;
    const Dim& extent = places[next++];
    if (!(updates.shape[d] == extent)) {
      fail("dimension {} of the updates {} must be {}, as the indices {} have it", d,
           to_string(updates), extent.to_string(), to_string(context.tensor(1)));
    }
  }
  return x;
}

template <class T>
T combined(Combiner combiner, T old, T update) {
  switch (combiner) {
    case Combiner::assign:
      return update;
    case Combiner::add:
      return wrapping_add(old, update);
    case Combiner::mul:
      return wrapping_mul(old, update);
    case Combiner::min:
      return min_of(old, update);
    case Combiner::max:
      return max_of(old, update);
  }
  __builtin_unreachable();
}

template <class Codec>
void scatter_into(const EvalContext& context, const PlacedWindows& windows, ResultBuffer& result) {
  const Combiner combiner = context.node.attrs.as<ScatterAttrs>().combiner;
  const Literal& updates = context.tensor(2);
  const std::unique_ptr<typename Codec::Value[]> values = decode<Codec>(context.tensor(0));
  const typename Codec::Stored* from = updates.data<typename Codec::Stored>();
  Walk<2> walk(updates.shape(), {windows.place_strides, windows.window_strides});
  walk.each({0, 0}, [&](const auto& at) {
    const typename Codec::Value update = Codec::load(*from++);
    const int64_t start = windows.starts[static_cast<size_t>(at[0])];
    if (start < 0) return;
    typename Codec::Value& old = values[static_cast<size_t>(start + at[1])];
    old = combined(combiner, old, update);
  });
  encode<Codec>(values.get(), result);
}

Value evaluate_scatter(const EvalContext& context) {
  const ScatterAttrs& attrs = context.node.attrs.as<ScatterAttrs>();
  const Literal& x = context.tensor(0);
  const Literal& updates = context.tensor(2);
  if (updates.element_count() == 0 || x.element_count() == 0) return x;
  const WindowNumbers numbers = numbers_of(attrs);
  std::vector<int64_t> window(x.shape().size(), 1);
  const std::vector<size_t> kept = kept_dimensions(static_cast<int64_t>(x.shape().size()), numbers);
  for (size_t i = 0; i < kept.size(); ++i) {
    window[kept[i]] = updates.shape()[static_cast<size_t>(attrs.update_window_dims[i])];
    if (window[kept[i]] > x.shape()[kept[i]]) {
      fail("a window of {} does not fit dimension {} of {}", window[kept[i]], kept[i],
           to_string(x.type()));
    }
  }
  const PlacedWindows windows =
      place_windows(numbers, x.shape(), context.tensor(1), window, updates.shape(), Outside::skip);
  ResultBuffer result(x.element(), x.shape());
  visit_codec(x.element(),
              [&](auto codec) { scatter_into<decltype(codec)>(context, windows, result); });
  return result.finish();
}

}  // namespace

const OpDef scatter = {
    .name = "scatter",
    .documentation =
        "The first operand with windows of the third combined in where the second, index "
        "vectors, says; windows that do not fit are left out.",
    .min_operands = 3,
    .max_operands = 3,
    .default_attrs = ScatterAttrs{},
    .infer = infer_scatter,
    .evaluate = evaluate_scatter,
    .gradient = no_gradient("not differentiated"),
};

}  // namespace backcast::ops
