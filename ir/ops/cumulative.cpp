// cumulative: y[i] = x[0] ∘ … ∘ x[i] along `axis`, ∘ being + or ·; `exclusive` leaves x[i] out and
// `reverse` runs from the end. Floats accumulate in double, integers wrap around.
#include "ir/ops/ops.h"
#include "ir/ops/reduction.h"
#include "ir/ops/rows_along.h"
#include "ir/ops/val.h"

namespace backcast::ops {
namespace {

Type infer_cumulative(const InferContext& context) {
  const CumulativeAttrs& attrs = context.attrs.as<CumulativeAttrs>();
  if (attrs.kind != Reduction::sum && attrs.kind != Reduction::prod) {
    fail("cumulative computes sum or prod, not {}", enum_name(attrs.kind));
  }
  const TensorType& x = require_kind(context, 0, kNumeric);
  require_axis(attrs.axis, x.rank(), "axis");
  return x;
}

Value evaluate_cumulative(const EvalContext& context) {
  const CumulativeAttrs& attrs = context.node.attrs.as<CumulativeAttrs>();
  const Literal& x = context.tensor(0);
  ResultBuffer result(x.element(), x.shape());
  if (result.count() == 0) return result.finish();
  const RowsAlong rows(x.shape(), attrs.axis);
  visit_codec_of<kNumeric>(x.element(), [&](auto codec) {
    using Codec = decltype(codec);
    using T = typename Codec::Value;
    const typename Codec::Stored* from = x.data<typename Codec::Stored>();
    typename Codec::Stored* to = result.data<typename Codec::Stored>();
    visit_reduction<T>(attrs.kind, [&](auto combine) {
      rows.each([&](int64_t, int64_t first) {
        T running = reduction_identity<T>(attrs.kind);
        for (int64_t i = 0; i < rows.extent; ++i) {
          const int64_t at = first + (attrs.reverse ? rows.extent - 1 - i : i) * rows.stride;
          const T next = combine(running, Codec::load(from[at]));
          to[at] = Codec::store(attrs.exclusive ? running : next);
          running = next;
        }
      });
    });
  });
  return result.finish();
}

/// x moved by `distance` against the direction of the running product, zeros moving in.
Val element_after(const Val& x, const CumulativeAttrs& attrs, int64_t distance) {
  const size_t rank = x.shape().size(), axis = static_cast<size_t>(attrs.axis);
  PadAttrs pads{Dims(rank, 0), Dims(rank, 0), Ints(rank, 0)};
  pads.low[axis] = attrs.reverse ? distance : -distance;
  pads.high[axis] = attrs.reverse ? -distance : distance;
  return x.emit(pad, {x.builder().scalar(x.element(), 0)}, pads);
}

/// dx[k] = p[k] · r[k], p being the product of all before k and r what follows contributes:
/// r[k] = u[k] + x[k+1] · r[k+1] (exclusive: u[k+1]). The recurrence is solved by doubling: after
/// each round r[k] = b[k] + a[k] · r[k + distance]. Nothing is divided, so zeros do not matter.
Val gradient_of_running_product(const Val& x, const Val& u, const CumulativeAttrs& attrs) {
  Val a = element_after(x, attrs, 1);
  Val b = attrs.exclusive ? element_after(u, attrs, 1) : u;
  const Dim extent = x.shape()[static_cast<size_t>(attrs.axis)];
  const int64_t longest = extent.range(x.builder().module().symbols).max;
  for (int64_t distance = 1; distance < longest; distance *= 2) {
    b = b + a * element_after(b, attrs, distance);
    if (distance > longest / 2) break;
    a = a * element_after(a, attrs, distance);
  }
  CumulativeAttrs before = attrs;
  before.exclusive = true;
  return x.emit(cumulative, {}, before) * b;
}

std::vector<Adjoint> gradient_of_cumulative(GradientContext& context) {
  const CumulativeAttrs& attrs = context.node.attrs.as<CumulativeAttrs>();
  const Val x(context.builder, context.operand(0)), seed(context.builder, context.seed());
  if (attrs.kind == Reduction::prod) return {gradient_of_running_product(x, seed, attrs)};
  CumulativeAttrs back = attrs;
  back.reverse = !attrs.reverse;
  return {seed.emit(cumulative, {}, back)};
}

}  // namespace

const OpDef cumulative = {
    .name = "cumulative",
    .documentation =
        "The running sum or product along `axis`, with or without the element itself, "
        "from the start or from the end.",
    .min_operands = 1,
    .max_operands = 1,
    .default_attrs = CumulativeAttrs{},
    .infer = infer_cumulative,
    .evaluate = evaluate_cumulative,
    .gradient = gradient_of_cumulative,
};

}  // namespace backcast::ops
