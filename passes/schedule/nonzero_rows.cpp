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
  bool converts = false;  // one of them from a narrower type
};

/// What a factor reads, perhaps to convert it.
Expr read_of(const Expr& factor) {
  return factor->kind == ExprKind::cast ? factor->args[0] : factor;
}

std::optional<Product> product_of(const Definition& definition) {
  if (definition.accumulators.size() != 1) return std::nullopt;
  const loop::Accumulator& acc = definition.accumulators[0];
  if (acc.combine != loop::Combine::sum || !loop::is_float(acc.type.scalar)) return std::nullopt;
  Product result;
  const Expr value = without_guard(acc, result.conditions);
  if (value->kind != ExprKind::binary || value->op != Op::mul) return std::nullopt;
  result.a = read_of(value->args[0]);
  result.b = read_of(value->args[1]);
  result.converts = std::ranges::any_of(
      value->args, [](const Expr& factor) { return factor->kind == ExprKind::cast; });
  if (result.a->kind != ExprKind::access || result.b->kind != ExprKind::access) {
    return std::nullopt;
  }
  return result;
}

Expr flat_of(const loop::Kernel& kernel, const Expr& access) {
  return loop::flat_index(kernel.find(access->name)->shape, access->args);
}

bool decides(const std::vector<Expr>& conditions, const std::string& axis) {
  return std::any_of(conditions.begin(), conditions.end(),
                     [&](const Expr& c) { return mentions(c, axis); });
}

/// The reduction axes that run through a row without a gap, the fastest one last.
std::vector<Axis> along_row(const Definition& definition, const Expr& flat,
                            const std::vector<Expr>& conditions,
                            const std::set<std::string>& outside) {
  std::vector<Axis> result;
  int64_t run = 1;
  for (bool found = true; found;) {
    found = false;
    for (const Axis& axis : definition.reduce_axes) {
      const std::optional<int64_t> extent = static_extent(axis);
      const bool taken = std::any_of(result.begin(), result.end(),
                                     [&](const Axis& other) { return other.name == axis.name; });
      if (taken || decides(conditions, axis.name) || !extent || outside.contains(axis.name) ||
          coefficient(flat, axis.name) != run) {
        continue;
      }
      result.insert(result.begin(), axis);
      run *= *extent;
      found = true;
      break;
    }
  }
  return result;
}

/// Whether the index grows evenly along the axes, the fastest one last.
bool is_even(const Expr& flat, const std::vector<Axis>& axes) {
  const std::optional<int64_t> step = coefficient(flat, axes.back().name);
  int64_t run = 1;
  for (size_t i = axes.size(); i-- > 0 && step;) {
    if (coefficient(flat, axes[i].name) != *step * run) return false;
    run *= *static_extent(axes[i]);
  }
  return step.has_value();
}

void set_axes(NonzeroRows& rows, const std::vector<Axis>& axes) {
  for (const Axis& axis : axes) {
    rows.axes.push_back(axis.name);
    rows.count *= *static_extent(axis);
  }
}

/// Rows in the order in which the factor lies.
bool find_along(const Definition& definition, const loop::BufferParam& param,
                const std::vector<Expr>& conditions, const Expr& flat,
                const std::set<std::string>& outside, NonzeroRows& result) {
  const std::optional<int64_t> bytes = static_bytes(param);
  const std::vector<Axis> axes = along_row(definition, flat, conditions, outside);
  if (!bytes || *bytes == 0 || axes.empty()) return false;
  set_axes(result, axes);
  result.is_joint = is_even(result.flat_weight, axes);
  result.row = flat;
  for (const std::string& axis : result.axes) {
    result.row = loop::substitute(result.row, {{axis, Expr(0)}});
  }
  const int64_t elements = *bytes / byte_size(loop::element_of(param.element));
  if (elements % result.count != 0) return false;
  result.rows = elements / result.count;
  // A row begins where another one ends.
  const Expr rest = loop::simplify(loop::floor_mod(result.row, Expr(result.count)));
  if (!loop::is_constant(rest, 0)) return false;
  result.row = loop::simplify(loop::floor_div(result.row, Expr(result.count)));
  return true;
}

/// Rows of all steps, in the order in which what is multiplied lies.
void find_across(const Definition& definition, const std::vector<Expr>& conditions,
                 const Expr& flat, const std::set<std::string>& outside, NonzeroRows& result) {
  std::vector<Axis> axes;
  for (const Axis& axis : definition.reduce_axes) {
    if (!outside.contains(axis.name)) axes.push_back(axis);
  }
  std::stable_sort(axes.begin(), axes.end(), [&](const Axis& a, const Axis& b) {
    const auto step = [&](const Axis& axis) { return coefficient(result.flat_weight, axis.name); };
    return step(a).value_or(0) > step(b).value_or(0);
  });
  if (axes.empty()) return;
  set_axes(result, axes);
  result.is_joint = is_even(flat, axes) && is_even(result.flat_weight, axes);
  // What depends on taps is asked tap by tap.
  std::vector<Expr> of_all;
  for (const Expr& condition : conditions) {
    const auto asks = [&](const std::string& tap) { return mentions(condition, tap); };
    if (std::none_of(result.of.taps.begin(), result.of.taps.end(), asks)) {
      of_all.push_back(condition);
    }
  }
  for (const Axis& axis : definition.axes) {
    const bool differs = mentions(flat, axis.name) || decides(of_all, axis.name);
    if (differs) result.results.insert(axis.name);
  }
}

}  // namespace

std::vector<ZeroFactor> zero_factors(const Definition& definition, const loop::Kernel& kernel,
                                     const std::function<bool(const std::string&)>& is_rectified) {
  const std::optional<Product> product = product_of(definition);
  if (!product || product->a->name == product->b->name) return {};
  std::vector<ZeroFactor> result;
  for (const auto& [factor, weight] :
       {std::pair(product->a, product->b), {product->b, product->a}}) {
    const Scalar element = kernel.find(factor->name)->element;
    if (!is_rectified(factor->name)) continue;
    if (element != Scalar::f32 && element != Scalar::f64) continue;
    const Expr flat = flat_of(kernel, factor);
    result.push_back({factor->name, weight->name, {}});
    for (const Axis& axis : definition.axes) {
      const bool is_run = coefficient(flat, axis.name) == 1 && static_extent(axis).value_or(0) > 1;
      if (!is_run || decides(product->conditions, axis.name)) continue;
      result.push_back({factor->name, weight->name, axis.name});
    }
  }
  return result;
}

std::optional<NonzeroRows> find_nonzero_rows(const Definition& definition,
                                             const loop::Kernel& kernel, const ZeroFactor& of,
                                             const std::set<std::string>& outside) {
  for (const Axis& axis : definition.reduce_axes) {
    if (!static_extent(axis)) return std::nullopt;
  }
  const std::optional<Product> product = product_of(definition);
  if (!product) return std::nullopt;
  const bool is_first = product->a->name == of.factor;
  const Expr flat = flat_of(kernel, is_first ? product->a : product->b);
  NonzeroRows result{.of = of, .flat_weight = flat_of(kernel, is_first ? product->b : product->a)};
  result.is_guarded = !product->conditions.empty();
  result.converts = product->converts;
  if (!of.across.empty()) {
    find_across(definition, product->conditions, flat, outside, result);
  } else if (!find_along(definition, *kernel.find(of.factor), product->conditions, flat, outside,
                         result)) {
    return std::nullopt;
  }
  if (result.count < 2) return std::nullopt;
  const auto is_inside = [&](const std::string& axis) {
    return std::count(result.axes.begin(), result.axes.end(), axis) > 0;
  };
  for (const Axis& axis : definition.reduce_axes) {
    if (!is_inside(axis.name)) result.order.push_back(axis.name);
  }
  result.order.insert(result.order.end(), result.axes.begin(), result.axes.end());
  return result;
}

}  // namespace backcast
