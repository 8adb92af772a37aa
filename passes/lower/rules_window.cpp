// Lowering of the operators that remember what a window chose. scatter_window is written as a
// reduction over the windows that cover an element, so that every element is written once.
#include <fmt/format.h>

#include "ir/ops/ops.h"
#include "ir/ops/window_attrs.h"
#include "passes/lower/rule_table.h"

namespace backcast {
namespace {

using loop::Expr;
using loop::Op;
using Indices = std::vector<Expr>;

constexpr loop::Type kNumberType{loop::Scalar::i32, 1};

/// A conjunction; empty means true.
struct Guard {
  Expr condition;
  void require(Expr c) { condition = condition ? (condition && c) : c; }
  /// `value` where it holds, else `otherwise`; what is not taken is unread.
  Expr guarded(Expr value, Expr otherwise) const {
    if (!condition) return value;
    return loop::if_then_else(condition, std::move(value), std::move(otherwise));
  }
  Expr guarded(Expr value) const {
    const loop::Type type = value.type();
    return guarded(std::move(value), loop::constant(type, 0));
  }
};

int64_t product(const Ints& extents) {
  int64_t count = 1;
  for (const int64_t extent : extents) count *= extent;
  return count;
}

/// A variable of its own, or 0 for an axis of one step.
Expr add_axis(std::vector<loop::Axis>& axes, const std::string& name, const Dim& extent) {
  if (extent == Dim(1)) return Expr(0);
  axes.push_back({name, loop::expr_of(extent)});
  return loop::var(name);
}

/// Two accumulators, the best value and its number; a NaN beats every number.
void lower_arg_window(KernelBuilder& k) {
  const ReduceWindowAttrs& attrs = k.attrs<ReduceWindowAttrs>();
  const Shape& x = k.operand(0).shape;
  loop::Definition definition;
  Indices from, result;
  Guard inside;
  Expr number(0);
  for (size_t d = 0; d < x.size(); ++d) {
    const Expr o = add_axis(definition.axes, fmt::format("i{}", d), k.result().shape[d]);
    const Expr w = add_axis(definition.reduce_axes, fmt::format("k{}", d), attrs.window[d]);
    result.push_back(o);
    number = number * Expr(attrs.window[d]) + w;
    from.push_back(o * Expr(attrs.strides[d]) + w * Expr(attrs.dilation[d]) -
                   loop::expr_of(attrs.pad_low[d]));
    if (attrs.pad_low[d] == Dim(0) && attrs.pad_high[d] == Dim(0)) continue;
    inside.require(from.back() >= Expr(0));
    inside.require(from.back() < loop::expr_of(x[d]));
  }
  const loop::Type type = compute_type(k.operand(0).element);
  const Expr none = loop::int_constant(kNumberType, product(attrs.window));
  const Expr best = loop::var("best", type), where = loop::var("where", kNumberType);
  const Expr value = k.read(0, from);
  const bool is_max = attrs.kind == Reduction::max;
  Expr better = loop::binary(is_max ? Op::gt : Op::lt, value, best);
  better = loop::binary(Op::bit_or, better, loop::binary(Op::eq, where, none));
  if (loop::is_float(type.scalar)) {
    const Expr best_is_number = loop::binary(Op::eq, loop::unary(Op::is_nan, best),
                                             loop::int_constant({loop::Scalar::boolean, 1}, 0));
    better = loop::binary(Op::bit_or, better, loop::unary(Op::is_nan, value) && best_is_number);
  }
  definition.accumulators = {
      {"best", type, loop::Combine::general, is_max ? lowest(type) : highest(type),
       inside.guarded(loop::select(better, value, best), best)},
      {"where", kNumberType, loop::Combine::general, none,
       inside.guarded(loop::select(better, loop::cast(kNumberType, number), where), where)}};
  definition.outputs = {{"out0", result, k.stored(where)}};
  k.define(std::move(definition));
}

void lower_gather_window(KernelBuilder& k) {
  const GatherWindowAttrs& attrs = k.attrs<GatherWindowAttrs>();
  const Shape& x = k.operand(0).shape;
  k.map([&](const Indices& o) {
    const Expr number = loop::cast({}, k.read(1, o));
    Guard guard;
    guard.require(number < Expr(product(attrs.window)));
    Indices from(x.size());
    int64_t below = 1;  // numbers per step of dimension d
    for (size_t d = x.size(); d-- > 0;) {
      Expr step = loop::floor_mod(loop::floor_div(number, Expr(below)), Expr(attrs.window[d]));
      below *= attrs.window[d];
      from[d] = o[d] * Expr(attrs.strides[d]) + step * Expr(attrs.dilation[d]) -
                loop::expr_of(attrs.pad_low[d]);
      if (attrs.pad_low[d] == Dim(0) && attrs.pad_high[d] == Dim(0)) continue;
      guard.require(from[d] >= Expr(0));
      guard.require(from[d] < loop::expr_of(x[d]));
    }
    return guard.guarded(k.read(0, from));
  });
}

/// One dimension of the windows that cover an element.
struct Cover {
  Expr window;  // which one
  Expr step;    // which of its elements is the element
};

/// Adds an axis over the windows that reach element `p` of dimension d, the last of them first, and
/// what must hold for the window to exist and to hold the element.
Cover cover(const ScatterWindowAttrs& attrs, size_t d, const Expr& p, const Dim& windows,
            std::vector<loop::Axis>& axes, Guard& guard) {
  const int64_t stride = attrs.strides[d], dilation = attrs.dilation[d];
  const int64_t reach = (attrs.window[d] - 1) * dilation;
  const int64_t count = reach / stride + 1;
  const Expr j = add_axis(axes, fmt::format("j{}", d), count);
  const Expr padded = p + loop::expr_of(attrs.pad_low[d]);
  const Expr window = loop::floor_div(padded, Expr(stride)) - j;
  Expr step = loop::floor_mod(padded, Expr(stride)) + j * Expr(stride);
  const Dim& low = attrs.pad_low[d];
  const bool cropped = !low.is_constant() || low.constant() < 0;
  if (cropped || count > 1) guard.require(window >= Expr(0));
  const Dim last = Dim::floor_div(attrs.shape[d] - Dim(1) + attrs.pad_low[d], stride);
  if (!(last == windows - Dim(1))) guard.require(window < loop::expr_of(windows));
  if (stride - 1 + (count - 1) * stride > reach) guard.require(step < Expr(reach + 1));
  if (dilation > 1) {
    guard.require(loop::binary(Op::eq, loop::floor_mod(step, Expr(dilation)), Expr(0)));
    step = loop::floor_div(step, Expr(dilation));
  }
  return {window, step};
}

void lower_scatter_window(KernelBuilder& k) {
  const ScatterWindowAttrs& attrs = k.attrs<ScatterWindowAttrs>();
  loop::Definition definition;
  Indices windows, result;
  Guard guard;
  Expr number(0);
  for (size_t d = 0; d < attrs.shape.size(); ++d) {
    result.push_back(add_axis(definition.axes, fmt::format("i{}", d), attrs.shape[d]));
    const Cover c =
        cover(attrs, d, result.back(), k.operand(0).shape[d], definition.reduce_axes, guard);
    windows.push_back(c.window);
    number = number * Expr(attrs.window[d]) + c.step;
  }
  const loop::Type type = compute_type(k.result().element);
  const Expr zero = loop::constant(type, 0);
  const Expr chosen = loop::binary(Op::eq, loop::cast(kNumberType, k.read(1, windows)),
                                   loop::cast(kNumberType, number));
  const Expr value = guard.guarded(loop::select(chosen, k.read(0, windows), zero));
  if (definition.reduce_axes.empty()) {  // one window at most: no sum
    definition.outputs = {{"out0", result, k.stored(value)}};
  } else {
    definition.accumulators = {{"acc", type, loop::Combine::sum, zero, value}};
    definition.outputs = {{"out0", result, k.stored(loop::var("acc", type))}};
  }
  k.define(std::move(definition));
}

const LowerRow kRows[] = {
    {&ops::arg_window, lower_arg_window},
    {&ops::gather_window, lower_gather_window},
    {&ops::scatter_window, lower_scatter_window},
};

}  // namespace

std::span<const LowerRow> window_lowering() { return kRows; }

}  // namespace backcast
