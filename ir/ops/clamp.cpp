// clamp: y = min(max(x, lo), hi); lo and hi have x's shape or are scalars. A NaN in x stays.
#include "ir/ops/elementwise.h"

namespace backcast::ops {
namespace {

Type infer_clamp(const InferContext& context) {
  const TensorType& x = require_kind(context, 0, kNumeric);
  for (const size_t bound : {size_t{1}, size_t{2}}) {
    require_same_element(context, bound, 0);
    if (context.tensor(bound).rank() != 0) require_same_type(context, bound, 0);
  }
  return x;
}

Value evaluate_clamp(const EvalContext& context) {
  const Literal& x = context.tensor(0);
  const Literal& low = context.tensor(1);
  const Literal& high = context.tensor(2);
  const int64_t low_step = low.shape().empty() ? 0 : 1;
  const int64_t high_step = high.shape().empty() ? 0 : 1;
  ResultBuffer result(x.element(), x.shape());
  visit_codec_of<kNumeric>(x.element(), [&](auto codec) {
    using Codec = decltype(codec);
    using Stored = typename Codec::Stored;
    Stored* to = result.data<Stored>();
    const int64_t count = result.count();
    for (int64_t i = 0; i < count; ++i) {
      const typename Codec::Value raised =
          max_of(Codec::load(x.data<Stored>()[i]), Codec::load(low.data<Stored>()[i * low_step]));
      to[i] = Codec::store(min_of(raised, Codec::load(high.data<Stored>()[i * high_step])));
    }
  });
  return result.finish();
}

}  // namespace

const OpDef clamp = {
    .name = "clamp",
    .documentation = "min(max(x, lo), hi); the bounds have the shape of x or are scalars.",
    .min_operands = 3,
    .max_operands = 3,
    .default_attrs = {},
    .infer = infer_clamp,
    .evaluate = evaluate_clamp,
    .gradient = no_gradient("not differentiated"),
};

}  // namespace backcast::ops
