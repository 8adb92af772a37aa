#include "passes/schedule/sum_of_products.h"

#include "ir/loop/visit.h"
#include "passes/lower/definition_cost.h"
#include "passes/lower/lower_control.h"
#include "passes/schedule/affine.h"

namespace backcast {

using loop::Expr;
using loop::ExprKind;

Expr SumOfProducts::behind_guard(const Expr& value) const {
  const Expr& all = definition->accumulators[0].value;
  return guard ? loop::if_then_else(guard, value, all->args[2]) : value;
}

bool SumOfProducts::is_guarded_by(const std::string& axis) const {
  return guard ? mentions(guard, axis) : false;
}

std::optional<SumOfProducts> sum_of_products(const loop::Kernel& kernel) {
  const loop::Definition* found = loop::only_definition(kernel);
  if (found == nullptr || found->accumulators.size() != 1) return std::nullopt;
  const loop::Accumulator& sum = found->accumulators[0];
  const bool adds_integers =
      sum.combine == loop::Combine::sum && sum.type == loop::Type{loop::Scalar::i32};
  if (!adds_integers) return std::nullopt;
  const bool guarded = sum.value->kind == ExprKind::if_then_else;
  if (guarded && !loop::is_constant(sum.value->args[2], 0)) return std::nullopt;
  const Expr& product = guarded ? sum.value->args[1] : sum.value;
  if (product->kind != ExprKind::binary || product->op != loop::Op::mul) return std::nullopt;
  return SumOfProducts{found, product, guarded ? sum.value->args[0] : Expr()};
}

}  // namespace backcast
