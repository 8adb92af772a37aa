// reduce: sum, product, maximum, minimum, bitwise and or or over `axes`, which disappear. Floats
// accumulate in double and round once, integers wrap around; a NaN makes a maximum or minimum NaN;
// over no elements the result is the identity.
#include <algorithm>

#include "ir/ops/ops.h"
#include "ir/ops/reduction.h"
#include "ir/ops/val.h"
#include "ir/ops/walk.h"

namespace backcast::ops {
namespace {

std::vector<bool> reduced_axes(const Ints& axes, size_t rank) {
  std::vector<bool> reduced(rank, false);
  for (const int64_t axis : axes) reduced[static_cast<size_t>(axis)] = true;
  return reduced;
}

Type infer_reduce(const InferContext& context) {
  const ReduceAttrs& attrs = context.attrs.as<ReduceAttrs>();
  require_reducible(context, attrs.kind);
  const TensorType& x = context.tensor(0);
  require_axes(attrs.axes, x.rank(), "axes");
  const std::vector<bool> reduced = reduced_axes(attrs.axes, x.shape.size());
  TensorType result{x.element, {}};
  for (size_t d = 0; d < x.shape.size(); ++d) {
    if (!reduced[d]) result.shape.push_back(x.shape[d]);
  }
  return result;
}

Value evaluate_reduce(const EvalContext& context) {
  const ReduceAttrs& attrs = context.node.attrs.as<ReduceAttrs>();
  const Literal& x = context.tensor(0);
  ResultBuffer result(x.element(), context.result_shape());
  const std::vector<bool> reduced = reduced_axes(attrs.axes, x.shape().size());
  const std::vector<int64_t> result_strides = row_major_strides(result.shape());
  std::vector<int64_t> strides;
  size_t next = 0;
  for (size_t d = 0; d < reduced.size(); ++d) {
    strides.push_back(reduced[d] ? 0 : result_strides[next++]);
  }
  Walk<1> walk(x.shape(), {strides});
  visit_codec(x.element(), [&](auto codec) {
    using Codec = decltype(codec);
    using T = typename Codec::Value;
    const std::unique_ptr<T[]> values = make_array<T>(result.count());
    std::fill_n(values.get(), result.count(), reduction_identity<T>(attrs.kind));
    const typename Codec::Stored* from = x.data<typename Codec::Stored>();
    visit_reduction<T>(attrs.kind, [&](auto combine) {
      walk.each({0}, [&](const auto& at) {
        values[at[0]] = combine(values[at[0]], Codec::load(*from++));
      });
    });
    encode<Codec>(values.get(), result);
  });
  return result.finish();
}

Ints in_order(Ints axes) {
  std::sort(axes.begin(), axes.end());
  return axes;
}

/// For each element the product of the others that are multiplied with it, without dividing: that
/// of those before it times that of those after it.
Val product_of_the_others(const Val& x, const Ints& axes) {
  // All of `axes` become the last dimension.
  Ints order;
  Shape shape;
  Dim count = 1;
  for (int64_t d = 0; d < x.rank(); ++d) {
    const Dim extent = x.shape()[static_cast<size_t>(d)];
    if (std::find(axes.begin(), axes.end(), d) != axes.end()) {
      count = count * extent;
    } else {
      order.push_back(d);
      shape.push_back(extent);
    }
  }
  CumulativeAttrs before{Reduction::prod, static_cast<int64_t>(order.size()), true, false};
  order.insert(order.end(), axes.begin(), axes.end());
  shape.push_back(count);
  const Val moved = backcast::transpose(x, order);
  const Val row = backcast::reshape(moved, shape);
  CumulativeAttrs after = before;
  after.reverse = true;
  const Val others = row.emit(cumulative, {}, before) * row.emit(cumulative, {}, after);
  Ints inverse(order.size());
  for (size_t i = 0; i < order.size(); ++i) {
    inverse[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  }
  return backcast::transpose(backcast::reshape(others, moved.shape()), inverse);
}

std::vector<Adjoint> gradient_of_reduce(GradientContext& context) {
  const ReduceAttrs& attrs = context.node.attrs.as<ReduceAttrs>();
  const Val x(context.builder, context.operand(0)), seed(context.builder, context.seed());
  const Ints axes = in_order(attrs.axes);
  if (axes.empty()) return {seed};
  switch (attrs.kind) {
    case Reduction::sum:
      return {broadcast_along(seed, x.shape(), axes)};
    case Reduction::prod:
      return {broadcast_along(seed, x.shape(), axes) * product_of_the_others(x, axes)};
    case Reduction::max:
    case Reduction::min: {
      // Ties share equally. There are none without elements or with a NaN.
      const Val y = broadcast_along(Val(context.builder, context.result), x.shape(), axes);
      const Val best = backcast::compare(x, Comparison::eq, y);
      const Val count = sum(backcast::cast(best, seed.element()), axes);
      const Val share =
          broadcast_along(seed / backcast::max(count, count.like(1)), x.shape(), axes);
      return {backcast::select(best, share, share.like(0))};
    }
    default:
      return {};  // integers
  }
}

}  // namespace

const OpDef reduce = {
    .name = "reduce",
    .documentation =
        "Sum, product, maximum, minimum, bitwise and or bitwise or over `axes`, which "
        "disappear; over no elements the identity.",
    .min_operands = 1,
    .max_operands = 1,
    .default_attrs = ReduceAttrs{},
    .infer = infer_reduce,
    .evaluate = evaluate_reduce,
    .gradient = gradient_of_reduce,
};

}  // namespace backcast::ops
