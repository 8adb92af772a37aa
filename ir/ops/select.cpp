// select: y = p ? a : b, with a bool p; all three have the same shape.
#include "ir/ops/elementwise.h"

namespace backcast::ops {
namespace {

Type infer_select(const InferContext& context) {
  const TensorType& p = require_kind(context, 0, kBool);
  require_same_type(context, 2, 1);
  const TensorType& a = context.tensor(1);
  if (!(p.shape == a.shape)) {
    fail("operands 0 and 1 must have equal shapes and are {} and {}", to_string(p), to_string(a));
  }
  return a;
}

Value evaluate_select(const EvalContext& context) {
  const Literal& a = context.tensor(1);
  ResultBuffer result(a.element(), a.shape());
  visit_word(a.element(), [&](auto word) {
    using Word = decltype(word);
    const uint8_t* p = context.tensor(0).data<uint8_t>();
    const Word* from_a = a.data<Word>();
    const Word* from_b = context.tensor(2).data<Word>();
    Word* to = result.data<Word>();
    const int64_t count = result.count();
    for (int64_t i = 0; i < count; ++i) to[i] = p[i] != 0 ? from_a[i] : from_b[i];
  });
  return result.finish();
}

}  // namespace

const OpDef select = {
    .name = "select",
    .documentation =
        "Element by element the second operand where the first, a bool, holds and the "
        "third elsewhere.",
    .min_operands = 3,
    .max_operands = 3,
    .default_attrs = {},
    .infer = infer_select,
    .evaluate = evaluate_select,
    .gradient = no_gradient("not differentiated"),
};

}  // namespace backcast::ops
