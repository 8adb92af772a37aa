// The one-dimensional transforms of F(m, 3), m = 2 (points 0, 1, -1, ∞) or 4 (points 0, ±1, ±2, ∞),
// for whatever values: numbers when the error is measured, expressions when kernels are written.
//   results              y = Aᵀ [(G g) ⊙ (Bᵀ d)]
//   gradient of weights  g = Gᵀ [(A y) ⊙ (Bᵀ d)], which is F(3, m), the former transposed
// Two-dimensional ones apply them to rows, then to columns. Internal to `winograd`.
#pragma once

#include <cmath>
#include <type_traits>

#include "ir/loop/expr.h"

namespace backcast {

inline constexpr int kMostFrequencies = 6;  // per dimension

inline int frequencies(int m) { return m + 2; }

/// `ops` gives add(a, b), sub(a, b), times(k, a) and scaled(k, a, b) = k·a + b.
/// t = Bᵀ d: m + 2 inputs → m + 2 frequencies.
template <class V, class Ops>
void input_transform(int m, const V* d, V* t, Ops& ops) {
  if (m == 2) {
    t[0] = ops.sub(d[0], d[2]);
    t[1] = ops.add(d[1], d[2]);
    t[2] = ops.sub(d[2], d[1]);
    t[3] = ops.sub(d[1], d[3]);
    return;
  }
  const V even = ops.scaled(-4, d[2], d[4]), odd = ops.scaled(-4, d[1], d[3]);
  const V near = ops.sub(d[4], d[2]), far = ops.sub(d[3], d[1]);
  t[0] = ops.scaled(4, d[0], ops.scaled(-5, d[2], d[4]));
  t[1] = ops.add(even, odd);
  t[2] = ops.sub(even, odd);
  t[3] = ops.scaled(2, far, near);
  t[4] = ops.scaled(-2, far, near);
  t[5] = ops.scaled(4, d[1], ops.scaled(-5, d[3], d[5]));
}

/// y = Aᵀ p: m + 2 products → m outputs.
template <class V, class Ops>
void output_transform(int m, const V* p, V* y, Ops& ops) {
  const V sum = ops.add(p[1], p[2]), difference = ops.sub(p[1], p[2]);
  if (m == 2) {
    y[0] = ops.add(p[0], sum);
    y[1] = ops.sub(difference, p[3]);
    return;
  }
  const V outer = ops.add(p[3], p[4]), slope = ops.sub(p[3], p[4]);
  y[0] = ops.add(ops.add(p[0], sum), outer);
  y[1] = ops.scaled(2, slope, difference);
  y[2] = ops.scaled(4, outer, sum);
  y[3] = ops.scaled(8, slope, ops.add(difference, p[5]));
}

/// u = G g: three taps → m + 2 frequencies.
template <class V, class Ops>
void weight_transform(int m, const V* g, V* u, Ops& ops) {
  const V sum = ops.add(g[0], g[2]);
  const double scale = m == 2 ? 0.5 : -1.0 / 6;
  u[0] = m == 2 ? g[0] : ops.times(0.25, g[0]);
  u[1] = ops.times(scale, ops.add(sum, g[1]));
  u[2] = ops.times(scale, ops.sub(sum, g[1]));
  if (m == 4) {
    const V outer = ops.scaled(4, g[2], g[0]);
    u[3] = ops.times(1.0 / 24, ops.scaled(2, g[1], outer));
    u[4] = ops.times(1.0 / 24, ops.scaled(-2, g[1], outer));
  }
  u[m + 1] = g[2];
}

/// s = A y, for the gradient with respect to the weights: m outputs → m + 2 frequencies.
template <class V, class Ops>
void output_gradient_transform(int m, const V* y, V* s, Ops& ops) {
  s[0] = y[0];
  if (m == 2) {
    s[1] = ops.add(y[0], y[1]);
    s[2] = ops.sub(y[0], y[1]);
    s[3] = ops.times(-1, y[1]);
    return;
  }
  const V even = ops.add(y[0], y[2]), odd = ops.add(y[1], y[3]);
  const V outer = ops.scaled(4, y[2], y[0]), slope = ops.scaled(4, y[3], y[1]);
  s[1] = ops.add(even, odd);
  s[2] = ops.sub(even, odd);
  s[3] = ops.scaled(2, slope, outer);
  s[4] = ops.scaled(-2, slope, outer);
  s[5] = y[3];
}

/// g = Gᵀ p: m + 2 sums → the gradients of three taps.
template <class V, class Ops>
void weight_gradient_transform(int m, const V* p, V* g, Ops& ops) {
  const V sum = ops.add(p[1], p[2]), difference = ops.sub(p[1], p[2]);
  if (m == 2) {
    g[0] = ops.scaled(0.5, sum, p[0]);
    g[1] = ops.times(0.5, difference);
    g[2] = ops.scaled(0.5, sum, p[3]);
    return;
  }
  const V outer = ops.add(p[3], p[4]), slope = ops.sub(p[3], p[4]);
  g[0] = ops.scaled(0.25, p[0], ops.scaled(-1.0 / 6, sum, ops.times(1.0 / 24, outer)));
  g[1] = ops.scaled(-1.0 / 6, difference, ops.times(1.0 / 12, slope));
  g[2] = ops.scaled(1.0 / 6, ops.sub(outer, sum), p[5]);
}

/// Arithmetic of a type, with fused multiply-adds or without.
template <class T>
struct NumberOps {
  bool fused = false;
  T add(T a, T b) const { return a + b; }
  T sub(T a, T b) const { return a - b; }
  T times(double k, T a) const { return static_cast<T>(k) * a; }
  T scaled(double k, T a, T b) const { return multiply_add(static_cast<T>(k), a, b); }
  T multiply_add(T a, T b, T c) const {
    if constexpr (std::is_floating_point_v<T>) {
      if (fused) return std::fma(a, b, c);
    }
    return a * b + c;
  }
};

/// Arithmetic of expressions, for definitions.
struct ExprOps {
  loop::Type type;
  bool fused = false;
  loop::Expr add(const loop::Expr& a, const loop::Expr& b) const { return a + b; }
  loop::Expr sub(const loop::Expr& a, const loop::Expr& b) const { return a - b; }
  loop::Expr times(double k, const loop::Expr& a) const {
    return loop::float_constant(type, k) * a;
  }
  loop::Expr scaled(double k, const loop::Expr& a, const loop::Expr& b) const {
    return fused ? loop::fma(loop::float_constant(type, k), a, b) : times(k, a) + b;
  }
};

/// The transform of a square patch, both ways, in place of its `from`² values: `to`² in `result`.
template <class V, class Ops, class Transform>
void both_ways(int from, int to, const V* patch, V* result, Ops& ops, const Transform& transform) {
  V half[kMostFrequencies * kMostFrequencies], column[kMostFrequencies], out[kMostFrequencies];
  for (int j = 0; j < from; ++j) {
    for (int i = 0; i < from; ++i) column[i] = patch[i * from + j];
    transform(column, out, ops);
    for (int i = 0; i < to; ++i) half[i * from + j] = out[i];
  }
  for (int i = 0; i < to; ++i) transform(half + i * from, result + i * to, ops);
}

}  // namespace backcast
