// See shift_taps.h.
#include "passes/schedule/shift_taps.h"

#include <algorithm>

#include "ir/loop/visit.h"
#include "passes/schedule/affine.h"

namespace backcast {

using loop::Axis;
using loop::Definition;
using loop::Expr;
using loop::ExprKind;
using loop::Op;

namespace {

/// The end of the operand along a reduction axis: the n of `e >= 0 & e < n`, where e is the axis
/// and an offset; nothing without both.
struct Bounds {
  Expr at;  // e
  int64_t end = 0;
  size_t lower = 0, upper = 0;  // of the conditions
};

std::optional<Bounds> bounds_of(const std::vector<Expr>& conditions, const std::string& axis) {
  for (size_t i = 0; i < conditions.size(); ++i) {
    const Expr& lower = conditions[i];
    if (lower->kind != ExprKind::binary || lower->op != Op::ge || !mentions(lower, axis)) continue;
    if (!loop::is_constant(lower->args[1], 0) || coefficient(lower->args[0], axis) != 1) return {};
    for (size_t j = 0; j < conditions.size(); ++j) {
      const Expr& upper = conditions[j];
      int64_t end = 0;
      const bool fits = upper->kind == ExprKind::binary && upper->op == Op::lt &&
                        loop::equal(upper->args[0], lower->args[0]) &&
                        loop::as_constant(upper->args[1], end);
      if (fits) return Bounds{lower->args[0], end, i, j};
    }
  }
  return std::nullopt;
}

/// Whether the parameter is read at an index that mentions the variable.
bool reads_with(const Expr& value, const std::string& param, const std::string& variable) {
  bool found = false;
  loop::visit(value, [&](const Expr& e) {
    found = found || (e->kind == ExprKind::access && e->name == param && mentions(e, variable));
  });
  return found;
}

}  // namespace

std::optional<ShiftedTaps> shift_taps(const Definition& definition, const std::string& factor) {
  if (definition.accumulators.size() != 1) return std::nullopt;
  ShiftedTaps result{.definition = definition};
  loop::Accumulator& acc = result.definition.accumulators[0];
  std::vector<Expr> conditions;
  Expr value = without_guard(acc, conditions);
  for (Axis& axis : result.definition.reduce_axes) {
    const std::optional<int64_t> extent = static_extent(axis);
    const std::optional<Bounds> bounds = bounds_of(conditions, axis.name);
    if (!extent || !bounds) continue;
    std::vector<const Axis*> taps;
    for (const Axis& tap : definition.axes) {
      if (mentions(bounds->at, tap.name)) taps.push_back(&tap);
    }
    if (taps.size() != 1 || coefficient(bounds->at, taps[0]->name) != 1) return std::nullopt;
    const Expr offset = loop::substitute(bounds->at, {{axis.name, Expr(0)}});
    const Expr former = loop::simplify(loop::var(axis.name) - offset);
    value = loop::simplify(loop::substitute(value, {{axis.name, former}}));
    if (reads_with(value, factor, taps[0]->name)) return std::nullopt;
    conditions[bounds->lower] = former >= Expr(0);
    conditions[bounds->upper] = former < Expr(*extent);
    axis.extent = Expr(bounds->end);
    result.taps.push_back(taps[0]->name);
    const auto among = static_cast<double>(static_extent(*taps[0]).value_or(1) - 1);
    result.inside.push_back(std::max(0.0, 1 - among / static_cast<double>(bounds->end)));
  }
  if (result.taps.empty()) return std::nullopt;
  Expr guard;
  for (const Expr& condition : conditions) guard = guard ? (guard && condition) : condition;
  acc.value = loop::if_then_else(guard, value, acc.init);
  return result;
}

}  // namespace backcast
