#include "passes/lower/definition_cost.h"

#include <algorithm>
#include <set>

#include "ir/loop/visit.h"

namespace backcast {

using loop::Definition;
using loop::Expr;
using loop::ExprKind;
using loop::ExprNode;

namespace {

/// x of `is_nan(x) ? constant : x`, which compilers compute once.
const Expr* guarded_by_nan(const Expr& e) {
  const Expr& condition = e->args[0];
  const bool guards = condition->kind == ExprKind::unary && condition->op == loop::Op::is_nan &&
                      e->args[1]->kind == ExprKind::constant &&
                      loop::equal(condition->args[0], e->args[2]);
  return guards ? &e->args[2] : nullptr;
}

void add_cost(const Expr& e, DefinitionCost& total) {
  switch (e->kind) {
    case ExprKind::access:
      for (const Expr& index : e->args) {
        if (reads_memory(index)) {
          ++total.indirect;
          add_cost(index, total);
        }
      }
      return;
    case ExprKind::unary:
    case ExprKind::binary:
      if (e.type().scalar != loop::Scalar::index && !loop::is_comparison(e->op)) ++total.arithmetic;
      break;
    case ExprKind::select:
      ++total.arithmetic;
      if (const Expr* value = guarded_by_nan(e)) return add_cost(*value, total);
      break;
    case ExprKind::fma:
      ++total.arithmetic;
      break;
    case ExprKind::cast:
      if (loop::is_half(e.type().scalar) || loop::is_half(e->args[0].type().scalar)) {
        ++total.arithmetic;
      }
      break;
    case ExprKind::call:
      total.arithmetic += kMathFunctionCost;
      break;
    default:
      break;
  }
  for (const Expr& arg : e->args) add_cost(arg, total);
}

}  // namespace

bool reads_memory(const Expr& e) {
  bool found = false;
  loop::visit(e, [&](const Expr& n) { found = found || n->kind == ExprKind::access; });
  return found;
}

bool looks_up(const loop::Definition& definition) {
  bool found = false;
  for_each_access(definition, [&](const loop::ExprNode& read, bool in_sum) {
    found = found || (!in_sum && std::any_of(read.args.begin(), read.args.end(), reads_memory));
  });
  return found;
}

DefinitionCost cost(const Expr& value) {
  DefinitionCost total;
  add_cost(value, total);
  return total;
}

DefinitionCost cost(const Definition& definition) {
  DefinitionCost total;
  for (const loop::Accumulator& acc : definition.accumulators) add_cost(acc.value, total);
  for (const loop::DefinitionOutput& output : definition.outputs) add_cost(output.value, total);
  return total;
}

int64_t most_of(const loop::Axis& axis, const SymbolRanges& symbols) {
  int64_t extent = 1;
  std::map<std::string, Expr> maxima;
  for (const auto& [name, range] : symbols) maxima[name] = Expr(range.max);
  loop::as_constant(loop::simplify(loop::substitute(axis.extent, maxima)), extent);
  return extent;
}

int64_t points(const Definition& definition, const SymbolRanges& symbols) {
  int64_t result = 1;
  for (const std::vector<loop::Axis>* axes : {&definition.axes, &definition.reduce_axes}) {
    for (const loop::Axis& axis : *axes) result *= std::max<int64_t>(most_of(axis, symbols), 1);
  }
  return result;
}

size_t params(const Definition& definition) {
  std::set<std::string> names;
  for_each_access(definition, [&](const ExprNode& read, bool) { names.insert(read.name); });
  return names.size();
}

int64_t reads_of(const Definition& definition, const std::string& param) {
  int64_t reads = 0;
  for_each_access(definition, [&](const ExprNode& read, bool) { reads += read.name == param; });
  return reads;
}

void for_each_access(const Definition& definition,
                     const std::function<void(const ExprNode&, bool)>& f) {
  const auto walk = [&](const Expr& e, bool in_reduction) {
    loop::visit(e, [&](const Expr& n) {
      if (n->kind == ExprKind::access) f(*n, in_reduction);
    });
  };
  for (const loop::Accumulator& acc : definition.accumulators) walk(acc.value, true);
  for (const loop::DefinitionOutput& output : definition.outputs) walk(output.value, false);
}

void transform(Definition& definition, const std::function<Expr(const Expr&)>& f) {
  for (loop::Accumulator& acc : definition.accumulators) acc.value = loop::rewrite(acc.value, f);
  for (loop::DefinitionOutput& output : definition.outputs) {
    output.value = loop::rewrite(output.value, f);
  }
}

void lift_guards(Definition& definition) {
  for (loop::Accumulator& acc : definition.accumulators) {
    if (acc.combine != loop::Combine::sum) continue;
    acc.value = loop::rewrite(acc.value, [](const Expr& e) -> Expr {
      if (e->kind != ExprKind::binary || e->op != loop::Op::mul) return e;
      for (size_t side : {0u, 1u}) {
        const Expr& guarded = e->args[side];
        const Expr& other = e->args[1 - side];
        if (guarded->kind != ExprKind::if_then_else) continue;
        const Expr& otherwise = guarded->args[2];
        if (otherwise->kind != ExprKind::constant || otherwise->float_value != 0 ||
            otherwise->int_value != 0) {
          continue;
        }
        Expr product = side == 0 ? guarded->args[1] * other : other * guarded->args[1];
        return loop::if_then_else(guarded->args[0], product, otherwise);
      }
      return e;
    });
    // Nested guards with the same alternative become one conjunction.
    acc.value = loop::rewrite(acc.value, [](const Expr& e) -> Expr {
      if (e->kind != ExprKind::if_then_else || e->args[1]->kind != ExprKind::if_then_else) return e;
      const Expr& inner = e->args[1];
      if (!loop::equal(inner->args[2], e->args[2])) return e;
      return loop::if_then_else(e->args[0] && inner->args[0], inner->args[1], e->args[2]);
    });
  }
}

}  // namespace backcast
