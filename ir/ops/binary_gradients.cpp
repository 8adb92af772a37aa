#include "ir/ops/binary_gradients.h"

#include "ir/ops/val.h"

namespace backcast::ops {

std::vector<Adjoint> gradient_of_extremum(GradientContext& context, Comparison better) {
  const Val seed(context.builder, context.seed());
  std::vector<Adjoint> result(2);
  for (size_t i = 0; i < 2; ++i) {
    if (!context.wanted[i]) continue;
    const Val mine(context.builder, context.operand(i));
    const Val other(context.builder, context.operand(1 - i));
    const Val shared =
        backcast::select(backcast::compare(mine, Comparison::eq, other), seed * 0.5, seed.like(0));
    result[i] = backcast::select(backcast::compare(mine, better, other), seed, shared);
  }
  return result;
}

std::vector<Adjoint> gradient_of_remainder(GradientContext& context) {
  const Val seed(context.builder, context.seed());
  std::vector<Adjoint> result{seed};
  if (!context.wanted[1]) return result;
  const Val a(context.builder, context.operand(0)), b(context.builder, context.operand(1));
  const Val remainder(context.builder, context.result);
  // What is divided is a multiple of b but for rounding.
  const Val quotient = ((a - remainder) / b).emit(round_even);
  result.push_back(-(seed * quotient));
  return result;
}

}  // namespace backcast::ops
