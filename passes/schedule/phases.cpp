// Splits a definition along conditions "position mod s = 0" between an axis and a reduction axis.
#include <optional>

#include "ir/graph/type.h"
#include "ir/loop/visit.h"
#include "passes/schedule/affine.h"
#include "passes/schedule/partition.h"

namespace backcast {

using loop::Axis;
using loop::Definition;
using loop::Expr;
using loop::ExprKind;
using loop::Op;

namespace {

constexpr size_t kMaxPhases = 64;

/// position mod `modulus` = 0, where only `axis` and perhaps `reduce` occur.
struct Condition {
  Expr position;
  int64_t modulus = 1;
  std::string axis, reduce;
};

std::optional<Condition> as_condition(const Expr& part, const Definition& definition) {
  if (part->kind != ExprKind::binary || part->op != Op::eq) return std::nullopt;
  const Expr& mod = part->args[0];
  Condition result;
  if (!loop::is_constant(part->args[1], 0) || mod->kind != ExprKind::binary ||
      mod->op != Op::floor_mod || !loop::as_constant(mod->args[1], result.modulus)) {
    return std::nullopt;
  }
  result.position = mod->args[0];
  for (const Axis& axis : definition.axes) {
    if (!mentions(result.position, axis.name)) continue;
    if (!result.axis.empty() || !static_extent(axis)) return std::nullopt;
    result.axis = axis.name;
  }
  for (const Axis& axis : definition.reduce_axes) {
    if (!mentions(result.position, axis.name)) continue;
    if (!result.reduce.empty() || !static_extent(axis)) return std::nullopt;
    result.reduce = axis.name;
  }
  if (result.axis.empty()) return std::nullopt;
  std::map<std::string, int64_t> zero{{result.axis, 0}, {result.reduce, 0}};
  if (!coefficient(result.position, result.axis) || !coefficient(result.position, result.reduce) ||
      !evaluate(result.position, zero)) {
    return std::nullopt;
  }
  return result;
}

std::optional<Condition> find_condition(const Definition& definition) {
  if (definition.accumulators.size() != 1) return std::nullopt;
  const loop::Accumulator& acc = definition.accumulators[0];
  for (Expr value = acc.value;
       value->kind == ExprKind::if_then_else && acc.combine != loop::Combine::general &&
       loop::equal(value->args[2], acc.init);
       value = value->args[1]) {
    for (const Expr& part : conjuncts(value->args[0])) {
      if (std::optional<Condition> found = as_condition(part, definition)) return found;
    }
  }
  return std::nullopt;
}

void substitute(Definition& definition, const std::map<std::string, Expr>& values) {
  for (loop::Accumulator& acc : definition.accumulators) {
    acc.value = loop::substitute(acc.value, values);
  }
  for (loop::DefinitionOutput& output : definition.outputs) {
    for (Expr& index : output.indices) index = loop::substitute(index, values);
    output.value = loop::substitute(output.value, values);
  }
}

/// Every `modulus`-th element of the axis from `phase` on.
void thin_out(Definition& definition, std::vector<Axis>& axes, const std::string& name,
              int64_t modulus, int64_t phase) {
  for (Axis& axis : axes) {
    if (axis.name != name) continue;
    axis.extent =
        Expr(std::max<int64_t>((*static_extent(axis) - phase + modulus - 1) / modulus, 0));
  }
  substitute(definition, {{name, loop::var(name) * Expr(modulus) + Expr(phase)}});
}

/// The definition with nothing to reduce: the accumulator keeps its starting value.
void make_empty(Definition& definition) {
  substitute(definition, {{definition.accumulators[0].name, definition.accumulators[0].init}});
  definition.accumulators.clear();
  definition.reduce_axes.clear();
}

void simplify(Definition& definition) {
  std::map<std::string, DimRange> ranges = ranges_of(definition.axes);
  ranges.merge(ranges_of(definition.reduce_axes));
  for (loop::Accumulator& acc : definition.accumulators) {
    acc.value = loop::simplify(acc.value, ranges);
  }
  for (loop::DefinitionOutput& output : definition.outputs) {
    output.value = loop::simplify(output.value, ranges);
  }
}

/// Nothing when the remainders leave more than one phase of the reduction axis.
std::optional<std::vector<Definition>> split(const Definition& definition, const Condition& c) {
  std::vector<Definition> parts;
  for (int64_t phase = 0; phase < c.modulus; ++phase) {
    std::vector<int64_t> fitting;
    for (int64_t r = 0; r < (c.reduce.empty() ? 1 : c.modulus); ++r) {
      std::map<std::string, int64_t> at{{c.axis, phase}, {c.reduce, r}};
      if (evaluate(c.position, at).value() % c.modulus == 0) fitting.push_back(r);
    }
    if (fitting.size() > 1) return std::nullopt;
    Definition part = definition;
    thin_out(part, part.axes, c.axis, c.modulus, phase);
    bool empty = fitting.empty();
    if (!empty && !c.reduce.empty()) {
      thin_out(part, part.reduce_axes, c.reduce, c.modulus, fitting[0]);
    }
    bool unused = false;
    for (const Axis& axis : part.axes) unused = unused || loop::is_constant(axis.extent, 0);
    for (const Axis& axis : part.reduce_axes) empty = empty || loop::is_constant(axis.extent, 0);
    if (unused) continue;
    if (empty) make_empty(part);
    simplify(part);
    parts.push_back(std::move(part));
  }
  return parts;
}

}  // namespace

std::vector<Definition> phases(const Definition& definition) {
  std::vector<Definition> parts{definition};
  for (size_t i = 0; i < parts.size();) {
    std::optional<Condition> condition = find_condition(parts[i]);
    if (!condition || parts.size() + static_cast<size_t>(condition->modulus) > kMaxPhases) {
      ++i;
      continue;
    }
    std::optional<std::vector<Definition>> finer = split(parts[i], *condition);
    if (!finer) return {definition};
    parts.erase(parts.begin() + static_cast<int64_t>(i));
    parts.insert(parts.begin() + static_cast<int64_t>(i), finer->begin(), finer->end());
  }
  return parts;
}

}  // namespace backcast
