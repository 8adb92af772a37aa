// 64-bit arithmetic for dimensions that reports overflow instead of wrapping.
#pragma once

#include <cstdint>

#include "ir/graph/error.h"

namespace backcast::math {

[[noreturn]] inline void overflow() {
  throw CompileError("a dimension exceeds 64 bits; give its symbols smaller values");
}

inline int64_t add(int64_t a, int64_t b) {
  int64_t result = 0;
  if (__builtin_add_overflow(a, b, &result)) overflow();
  return result;
}

inline int64_t subtract(int64_t a, int64_t b) {
  int64_t result = 0;
  if (__builtin_sub_overflow(a, b, &result)) overflow();
  return result;
}

inline int64_t multiply(int64_t a, int64_t b) {
  int64_t result = 0;
  if (__builtin_mul_overflow(a, b, &result)) overflow();
  return result;
}

/// Rounds toward minus infinity; CompileError when b is zero.
inline int64_t floor_div(int64_t a, int64_t b) {
  if (b == 0) throw CompileError("a dimension is divided by zero");
  if (b == -1) return subtract(0, a);
  const int64_t quotient = a / b;
  return quotient - (a % b != 0 && (a % b < 0) != (b < 0) ? 1 : 0);
}

/// Has the sign of b; CompileError when b is zero.
inline int64_t floor_mod(int64_t a, int64_t b) {
  if (b == 0) throw CompileError("a dimension is divided by zero");
  if (b == -1) return 0;
  const int64_t rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

inline uint64_t magnitude(int64_t a) {
  return a < 0 ? ~static_cast<uint64_t>(a) + 1 : static_cast<uint64_t>(a);
}

}  // namespace backcast::math
