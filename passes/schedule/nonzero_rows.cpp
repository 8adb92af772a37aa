// See nonzero_rows.h.
#include "passes/schedule/nonzero_rows.h"

#include <algorithm>
#include <utility>

#include "ir/loop/visit.h"
#include "passes/schedule/affine.h"

namespace backcast {

using loop::Axis;
using loop::Definition;
using loop::Expr;
using loop::ExprKind;
using loop::Op;
using loop::Scalar;

namespace {

/// The two accesses that a sum multiplies, and the conditions under which it does; nothing where it
/// does anything else.
struct Product {
  Expr a, b;
  std::vector<Expr> conditions;
};

std::optional<Product> product_of(const Definition& definition) {
  if (definition.accumulators.size() != 1) return std::nullopt;
  const loop::Accumulator& acc = definition.accumulators[0];
  if (acc.combine != loop::Combine::sum || !loop::is_float(acc.type.scalar)) return std::nullopt;
  Product result;
  const Expr value = without_guard(acc, result.conditions);
  if (value->kind != ExprKind::binary || value->op != Op::mul) return std::nullopt;
  result.a = value->args[0];
  result.b = value->args[1];
  if (result.a->kind != ExprKind::access || result.b->kind != ExprKind::access) {
    return std::nullopt;
  }
  return result;
}

Expr flat_of(const loop::Kernel& kernel, const Expr& access) {
  return loop::flat_index(kernel.find(access->name)->shape, access->args);
}

/// The reduction axes that run through a row without a gap, the fastest one last.
std::vector<Axis> along_row(const Definition& definition, const Expr& flat,
                            const std::vector<Expr>& conditions, const std::string& block) {
  std::vector<Axis> result;
  int64_t run = 1;
  for (bool found = true; found;) {
    found = false;
    for (const Axis& axis : definition.reduce_axes) {
      const std::optional<int64_t> extent = static_extent(axis);
      const bool taken = std::any_of(result.begin(), result.end(),
                                     [&](const Axis& other) { return other.name == axis.name; });
      const bool decided = std::any_of(conditions.begin(), conditions.end(),
                                       [&](const Expr& c) { return mentions(c, axis.name); });
      if (taken || decided || !extent || axis.name == block || coefficient(flat, axis.name) != run)
        continue;
      result.insert(result.begin(), axis);
      run *= *extent;
      found = true;
      break;
    }
  }
  return result;
}

}  // namespace

std::optional<NonzeroRows> find_nonzero_rows(
    const Definition& definition, const loop::Kernel& kernel,
    const std::function<bool(const std::string&)>& is_rectified, const std::string& block) {
  std::optional<Product> product = product_of(definition);
  if (!product) return std::nullopt;
  if (!is_rectified(product->a->name)) std::swap(product->a, product->b);
  NonzeroRows result{.factor = product->a->name,
                     .weight = product->b->name,
                     .flat_weight = flat_of(kernel, product->b),
                     .is_guarded = !product->conditions.empty()};
  const loop::BufferParam& param = *kernel.find(result.factor);
  const std::optional<int64_t> bytes = static_bytes(param);
  if (!is_rectified(result.factor) || result.factor == result.weight) return std::nullopt;
  if (!bytes || *bytes == 0) return std::nullopt;
  if (param.element != Scalar::f32 && param.element != Scalar::f64) return std::nullopt;
  result.row = flat_of(kernel, product->a);
  for (const Axis& axis : along_row(definition, result.row, product->conditions, block)) {
    result.axes.push_back(axis.name);
    result.count *= *static_extent(axis);
  }
  for (const std::string& axis : result.axes) {
    result.row = loop::substitute(result.row, {{axis, Expr(0)}});
  }
  const int64_t elements = *bytes / byte_size(loop::element_of(param.element));
  if (result.count < 2 || elements % result.count != 0) return std::nullopt;
  result.rows = elements / result.count;
  // A row begins where another one ends.
  const Expr rest = loop::simplify(loop::floor_mod(result.row, Expr(result.count)));
  if (!loop::is_constant(rest, 0)) return std::nullopt;
  result.row = loop::simplify(loop::floor_div(result.row, Expr(result.count)));
  for (const Axis& axis : definition.reduce_axes) {
    if (!static_extent(axis)) return std::nullopt;
    const bool inside = std::count(result.axes.begin(), result.axes.end(), axis.name) > 0;
    if (!inside) result.order.push_back(axis.name);
  }
  result.order.insert(result.order.end(), result.axes.begin(), result.axes.end());
  return result;
}

}  // namespace backcast
