// clamp: y = min(max(x, low), high); low and high have the shape of x or rank 0; NaN stays NaN.
#include "ir/ops/pointwise.h"

namespace backcast::ops {
namespace {

Type infer_clamp(const InferContext& c) {
  const TensorType& x = c.tensor(0);
  require(x.element != ElementType::boolean, "needs numbers, not {}", to_string(x));
  for (size_t i : {1u, 2u}) {
    const TensorType& bound = c.tensor(i);
    require(bound.element == x.element && (bound.rank() == 0 || bound.shape == x.shape),
            "bound {} does not fit {}", to_string(bound), to_string(x));
  }
  return x;
}

Value evaluate_clamp(const EvalContext& c) {
  TensorWriter out = result_writer(c);
  visit_compute_type(c.tensor(0).element(), [&]<class T>(T) {
    const auto bound = [&](size_t operand, int64_t i) {
      const Literal& tensor = c.tensor(operand);
      return element<T>(tensor, tensor.shape().empty() ? 0 : i);
    };
    for (int64_t i = 0; i < out.count(); ++i) {
      T x = element<T>(c.tensor(0), i), low = bound(1, i), high = bound(2, i);
      x = low > x ? low : x;
      out.set(i, high < x ? high : x);
    }
  });
  return out.finish();
}

}  // namespace

const OpDef clamp = {
    .name = "clamp",
    .documentation =
        "y = min(max(x, low), high); low and high have the shape of x or rank 0; NaN stays NaN.",
    .min_operands = 3,
    .max_operands = 3,
    .default_attrs = {},
    .infer = infer_clamp,
    .evaluate = evaluate_clamp};

}  // namespace backcast::ops
