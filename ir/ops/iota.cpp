// iota: y[…, i, …] = i, counting along `axis`; integers wrap around, floats round.
#include "ir/ops/ops.h"
#include "ir/ops/shape_rules.h"
#include "ir/ops/walk.h"

namespace backcast::ops {
namespace {

Type infer_iota(const InferContext& context) {
  const IotaAttrs& attrs = context.attrs.as<IotaAttrs>();
  if (attrs.element == ElementType::boolean) fail("iota does not count in bool");
  require_shape(attrs.shape, context.module.symbols, "shape");
  require_axis(attrs.axis, static_cast<int64_t>(attrs.shape.size()), "axis");
  return TensorType{attrs.element, attrs.shape};
}

Value evaluate_iota(const EvalContext& context) {
  const IotaAttrs& attrs = context.node.attrs.as<IotaAttrs>();
  ResultBuffer result(attrs.element, context.evaluate(attrs.shape));
  std::vector<int64_t> strides(result.shape().size(), 0);
  strides[static_cast<size_t>(attrs.axis)] = 1;
  Walk<1> walk(result.shape(), {strides});
  visit_codec_of<kNumeric>(attrs.element, [&](auto codec) {
    using Codec = decltype(codec);
    typename Codec::Stored* to = result.data<typename Codec::Stored>();
    walk.each({0}, [&](const auto& at) {
      *to++ = Codec::store(static_cast<typename Codec::Value>(at[0]));
    });
  });
  return result.finish();
}

}  // namespace

const OpDef iota = {
    .name = "iota",
    .documentation = "Counts 0, 1, 2, … along `axis` of a tensor of the given type.",
    .min_operands = 0,
    .max_operands = 0,
    .default_attrs = IotaAttrs{},
    .infer = infer_iota,
    .evaluate = evaluate_iota,
    .gradient = zero_gradient("no operands"),
};

}  // namespace backcast::ops
