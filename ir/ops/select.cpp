// select: y = p ? a : b, with a bool p; all three have the same shape.
#include "ir/ops/elementwise.h"
#include "ir/ops/val.h"

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

std::vector<Adjoint> gradient_of_select(GradientContext& context) {
  const Val p(context.builder, context.operand(0)), seed(context.builder, context.seed());
  std::vector<Adjoint> result(3);
  if (context.wanted[1]) result[1] = backcast::select(p, seed, seed.like(0));
  if (context.wanted[2]) result[2] = backcast::select(p, seed.like(0), seed);
  return result;
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
    .gradient = gradient_of_select,
};

}  // namespace backcast::ops
