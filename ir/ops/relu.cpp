// relu: y = max(x, 0). A NaN stays NaN. The derivative at 0 is taken as 0.
#include "ir/ops/elementwise.h"
#include "ir/ops/val.h"

namespace backcast::ops {
namespace {

struct Relu {
  template <class T>
  T operator()(T x) const {
    return x < T{0} ? T{0} : x;
  }
};

std::vector<Adjoint> gradient_of_relu(GradientContext& context) {
  // By the result, so that the operand need not be kept; 0 at the kink.
  const Val y(context.builder, context.result), seed(context.builder, context.seed());
  return {backcast::select(backcast::compare(y, Comparison::gt, 0.0), seed, seed.like(0))};
}

}  // namespace

const OpDef relu = {
    .name = "relu",
    .documentation = "The rectifier, max(x, 0); NaN stays NaN.",
    .min_operands = 1,
    .max_operands = 1,
    .default_attrs = {},
    .infer = infer_unary<kNumeric>,
    .evaluate = evaluate_unary<kNumeric, Relu>,
    .gradient = gradient_of_relu,
};

}  // namespace backcast::ops
