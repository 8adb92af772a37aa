// cumulative: y[i] = x[0] ∘ … ∘ x[i] along `axis`, ∘ being + or ·; `exclusive` leaves x[i] out and
// `reverse` runs from the end. Floats accumulate in double, integers wrap around.
#include "ir/ops/ops.h"
#include "ir/ops/reduction.h"
#include "ir/ops/rows_along.h"

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
    .gradient = no_gradient("not differentiated"),
};

}  // namespace backcast::ops
