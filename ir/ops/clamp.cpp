// clamp: y = min(max(x, lo), hi); lo and hi have x's shape or are scalars. A NaN in x stays.
#include "ir/ops/elementwise.h"
#include "ir/ops/val.h"

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

std::vector<Adjoint> gradient_of_clamp(GradientContext& context) {
  // x gets it where lo <= x <= hi, edges included; hi above it and wherever it lies below lo; lo
  // below it elsewhere. Scalar bounds get the sum.
  Builder& builder = context.builder;
  const Val x(builder, context.operand(0)), seed(builder, context.seed());
  const auto bound = [&](size_t i) {
    const Val scalar(builder, context.operand(i));
    return scalar.shape() == x.shape() ? scalar : backcast::broadcast(scalar, x.shape());
  };
  const Val low = bound(1), high = bound(2);
  const auto where = [&](const Val& first, const OpDef& join, const Val& second) {
    return backcast::select(first.emit(join, {second}), seed, seed.like(0));
  };
  const auto fitted = [&](const Val& part, size_t i) {
    return context.type(i).shape.empty() ? sum(part) : part;
  };
  std::vector<Adjoint> result(3);
  if (context.wanted[0]) {
    result[0] = where(backcast::compare(x, Comparison::ge, low), bit_and,
                      backcast::compare(x, Comparison::le, high));
  }
  if (context.wanted[1]) {
    result[1] = fitted(where(backcast::compare(x, Comparison::lt, low), bit_and,
                             backcast::compare(low, Comparison::le, high)),
                       1);
  }
  if (context.wanted[2]) {
    result[2] = fitted(where(backcast::compare(x, Comparison::gt, high), bit_or,
                             backcast::compare(high, Comparison::lt, low)),
                       2);
  }
  return result;
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
    .gradient = gradient_of_clamp,
};

}  // namespace backcast::ops
