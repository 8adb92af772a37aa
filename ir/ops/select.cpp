// select: y = p ? a : b, element by element.
#include "ir/ops/pointwise.h"

namespace backcast::ops {
namespace {

Type infer_select(const InferContext& c) {
  const TensorType& p = c.tensor(0);
  require(p.element == ElementType::boolean, "the condition is {}, not bool", to_string(p));
  require(c.tensor(1) == c.tensor(2), "the alternatives differ: {} and {}", to_string(c.tensor(1)),
          to_string(c.tensor(2)));
  require(p.shape == c.tensor(1).shape, "the condition is {}, the alternatives {}", to_string(p),
          to_string(c.tensor(1)));
  return c.tensor(1);
}

Value evaluate_select(const EvalContext& c) {
  TensorWriter out = result_writer(c);
  for (int64_t i = 0; i < out.count(); ++i) {
    out.copy(i, c.tensor(element<bool>(c.tensor(0), i) ? 1 : 2), i);
  }
  return out.finish();
}

}  // namespace

const OpDef select = {.name = "select",
                      .documentation = "y = p ? a : b, element by element.",
                      .min_operands = 3,
                      .max_operands = 3,
                      .default_attrs = {},
                      .infer = infer_select,
                      .evaluate = evaluate_select};

}  // namespace backcast::ops
