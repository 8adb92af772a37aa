// compare: y = a <direction> b, a bool. A comparison with NaN is false, except ne.
#include <functional>

#include "ir/ops/elementwise.h"

namespace backcast::ops {
namespace {

Type infer_compare(const InferContext& context) {
  require_same_type(context, 1, 0);
  return TensorType{ElementType::boolean, context.tensor(0).shape};
}

template <class Codec, class Predicate>
void compare_all(const Literal& a, const Literal& b, const Predicate& holds, ResultBuffer& result) {
  const typename Codec::Stored* from_a = a.data<typename Codec::Stored>();
  const typename Codec::Stored* from_b = b.data<typename Codec::Stored>();
  uint8_t* to = result.data<uint8_t>();
  const int64_t count = result.count();
  for (int64_t i = 0; i < count; ++i) {
    to[i] = holds(Codec::load(from_a[i]), Codec::load(from_b[i])) ? 1 : 0;
  }
}

template <class Codec>
void compare_by(Comparison direction, const Literal& a, const Literal& b, ResultBuffer& result) {
  switch (direction) {
    case Comparison::eq:
      return compare_all<Codec>(a, b, std::equal_to<>(), result);
    case Comparison::ne:
      return compare_all<Codec>(a, b, std::not_equal_to<>(), result);
    case Comparison::lt:
      return compare_all<Codec>(a, b, std::less<>(), result);
    case Comparison::le:
      return compare_all<Codec>(a, b, std::less_equal<>(), result);
    case Comparison::gt:
      return compare_all<Codec>(a, b, std::greater<>(), result);
    case Comparison::ge:
      return compare_all<Codec>(a, b, std::greater_equal<>(), result);
  }
}

Value evaluate_compare(const EvalContext& context) {
  const Literal& a = context.tensor(0);
  const Comparison direction = context.node.attrs.as<CompareAttrs>().direction;
  ResultBuffer result(ElementType::boolean, a.shape());
  visit_codec(a.element(), [&](auto codec) {
    compare_by<decltype(codec)>(direction, a, context.tensor(1), result);
  });
  return result.finish();
}

}  // namespace

const OpDef compare = {
    .name = "compare",
    .documentation =
        "Whether a stands in the given relation to b, as a bool; only ne holds for NaN.",
    .min_operands = 2,
    .max_operands = 2,
    .default_attrs = CompareAttrs{},
    .infer = infer_compare,
    .evaluate = evaluate_compare,
    .gradient = zero_gradient("a truth value"),
};

}  // namespace backcast::ops
