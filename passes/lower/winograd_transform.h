// The three one-dimensional transforms of F(m, 3), m = 2 (points 0, 1, -1, ∞) or 4 (points 0, ±1,
// ±2, ∞), for whatever values: numbers when the error is measured, expressions when kernels are
// written. Two-dimensional ones apply them to rows, then to columns. Internal to `winograd`.
#pragma once

#include <cmath>
#include <type_traits>

namespace backcast {

inline constexpr int kMostFrequencies = 6;  // per dimension

inline int frequencies(int m) { return m + 2; }

/// `ops` gives add(a, b), sub(a, b) and scaled(k, a, b) = k·a + b.
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
inline void weight_transform(int m, const double* g, double* u) {
  const double sum = g[0] + g[2];
  u[0] = m == 2 ? g[0] : g[0] / 4;
  const double scale = m == 2 ? 0.5 : -1.0 / 6;
  u[1] = scale * (sum + g[1]);
  u[2] = scale * (sum - g[1]);
  if (m == 4) {
    u[3] = g[0] / 24 + g[1] / 12 + g[2] / 6;
    u[4] = g[0] / 24 - g[1] / 12 + g[2] / 6;
  }
  u[m + 1] = g[2];
}

/// Arithmetic of a type, with fused multiply-adds or without.
template <class T>
struct NumberOps {
  bool fused = false;
  T add(T a, T b) const { return a + b; }
  T sub(T a, T b) const { return a - b; }
  T scaled(double k, T a, T b) const { return multiply_add(static_cast<T>(k), a, b); }
  T multiply_add(T a, T b, T c) const {
    if constexpr (std::is_floating_point_v<T>) {
      if (fused) return std::fma(a, b, c);
    }
    return a * b + c;
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
