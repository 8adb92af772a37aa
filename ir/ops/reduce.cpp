// reduce: sum, product, maximum, minimum, bitwise and or or over `axes`, which disappear. Floats
// accumulate in double and round once, integers wrap around; a NaN makes a maximum or minimum NaN;
// over no elements the result is the identity.
#include "ir/ops/ops.h"
#include "ir/ops/reduction.h"
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
    .gradient = no_gradient("not differentiated"),
};

}  // namespace backcast::ops
