#include "passes/schedule/affine.h"

#include "ir/graph/error.h"
#include "ir/graph/type.h"
#include "ir/loop/combine.h"
#include "ir/loop/visit.h"

namespace backcast {

using loop::Expr;
using loop::ExprKind;
using loop::Op;

bool mentions(const Expr& e, const std::string& variable) {
  bool found = false;
  loop::visit(e, [&](const Expr& n) {
    found = found || (n->kind == ExprKind::var && n->name == variable);
  });
  return found;
}

std::optional<size_t> dimension_mentioning(const Expr& access, const std::string& variable) {
  std::optional<size_t> found;
  for (size_t d = 0; d < access->args.size(); ++d) {
    if (!mentions(access->args[d], variable)) continue;
    if (found) return std::nullopt;
    found = d;
  }
  return found;
}

std::optional<size_t> dimension_along(const Expr& access, const std::string& variable) {
  const std::optional<size_t> found = dimension_mentioning(access, variable);
  return found && access->args[*found]->kind == ExprKind::var ? found : std::nullopt;
}

std::optional<int64_t> coefficient(const Expr& e, const std::string& variable) {
  if (e->kind == ExprKind::var) return e->name == variable ? 1 : 0;
  if (!mentions(e, variable)) return 0;
  if (e->kind != ExprKind::binary) return std::nullopt;
  const Expr& a = e->args[0];
  const Expr& b = e->args[1];
  std::optional<int64_t> ca = coefficient(a, variable), cb = coefficient(b, variable);
  if (!ca || !cb) return std::nullopt;
  int64_t factor = 0;
  switch (e->op) {
    case Op::add:
      return *ca + *cb;
    case Op::sub:
      return *ca - *cb;
    case Op::mul:
      if (loop::as_constant(a, factor)) return factor * *cb;
      if (loop::as_constant(b, factor)) return factor * *ca;
      return std::nullopt;
    default:
      return std::nullopt;
  }
}

bool is_linear(const Expr& e, const std::string& variable) {
  if (e->kind == ExprKind::var || !mentions(e, variable)) return true;
  if (e->kind != ExprKind::binary) return false;
  const Expr& a = e->args[0];
  const Expr& b = e->args[1];
  if (e->op == Op::mul && mentions(a, variable) && mentions(b, variable)) return false;
  const bool known = e->op == Op::add || e->op == Op::sub || e->op == Op::mul;
  return known && is_linear(a, variable) && is_linear(b, variable);
}

std::optional<int64_t> static_extent(const loop::Axis& axis) {
  int64_t value = 0;
  return loop::as_constant(axis.extent, value) ? std::optional(value) : std::nullopt;
}

std::map<std::string, DimRange> ranges_of(const std::vector<loop::Axis>& axes) {
  std::map<std::string, DimRange> ranges;
  for (const loop::Axis& axis : axes) {
    const std::optional<int64_t> extent = static_extent(axis);
    ranges[axis.name] = {0, extent ? std::max<int64_t>(*extent - 1, 0) : INT32_MAX};
  }
  return ranges;
}

std::optional<int64_t> static_bytes(const loop::BufferParam& param) {
  const ElementType element = loop::element_of(param.element);
  const Dim count = TensorType{element, param.shape}.element_count();
  return count.is_constant() ? std::optional(count.constant() * byte_size(element)) : std::nullopt;
}

std::vector<Expr> conjuncts(const Expr& condition) {
  if (condition->kind == ExprKind::binary && condition->op == Op::bit_and) {
    std::vector<Expr> result = conjuncts(condition->args[0]);
    for (const Expr& part : conjuncts(condition->args[1])) result.push_back(part);
    return result;
  }
  return {condition};
}

std::optional<int64_t> evaluate(const Expr& e, const std::map<std::string, int64_t>& values) {
  std::map<std::string, Expr> constants;
  for (const auto& [name, value] : values) constants[name] = Expr(value);
  Expr result = loop::simplify(loop::substitute(e, constants));
  int64_t value = 0;
  return loop::as_constant(result, value) ? std::optional(value) : std::nullopt;
}

loop::Expr without_guard(const loop::Accumulator& acc, std::vector<loop::Expr>& guard) {
  const bool is_general = acc.combine == loop::Combine::general;
  const loop::Expr identity = is_general ? loop::var(acc.name, acc.type) : acc.init;
  loop::Expr value = acc.value;
  while (value->kind == loop::ExprKind::if_then_else && loop::equal(value->args[2], identity)) {
    for (const loop::Expr& part : conjuncts(value->args[0])) guard.push_back(part);
    value = value->args[1];
  }
  return value;
}

loop::Definition without_accumulators(const loop::Definition& definition) {
  BC_CHECK(definition.reduce_axes.empty(), "there is an axis to reduce along");
  std::map<std::string, Expr> first, sums;
  for (const loop::Accumulator& acc : definition.accumulators) first[acc.name] = acc.init;
  for (const loop::Accumulator& acc : definition.accumulators) {
    sums[acc.name] = loop::combined(acc.combine, acc.init, loop::substitute(acc.value, first));
  }
  loop::Definition result = definition;
  result.accumulators.clear();
  for (loop::DefinitionOutput& output : result.outputs) {
    output.value = loop::substitute(output.value, sums);
  }
  return result;
}

}  // namespace backcast
