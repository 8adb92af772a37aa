// The combining functions of reduce, reduce_window and cumulative, on numbers (floats in double).
#pragma once

#include <limits>

#include "ir/ops/element_codec.h"
#include "ir/ops/shape_rules.h"

namespace backcast::ops {

/// CompileError unless the reduction has a meaning on operand 0: sum and prod on numbers, bit_and
/// and bit_or on integers and bool, max and min on all.
inline void require_reducible(const InferContext& context, Reduction kind) {
  switch (kind) {
    case Reduction::sum:
    case Reduction::prod:
      require_kind(context, 0, kNumeric);
      return;
    case Reduction::max:
    case Reduction::min:
      require_kind(context, 0, kAny);
      return;
    case Reduction::bit_and:
    case Reduction::bit_or:
      require_kind(context, 0, kBits);
      return;
  }
}

/// The result over no elements.
template <class T>
T reduction_identity(Reduction kind) {
  using Limits = std::numeric_limits<T>;
  switch (kind) {
    case Reduction::sum:
    case Reduction::bit_or:
      return T{0};
    case Reduction::prod:
      return T{1};
    case Reduction::max:
      return Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
    case Reduction::min:
      return Limits::has_infinity ? Limits::infinity() : Limits::max();
    case Reduction::bit_and:
      if constexpr (std::is_same_v<T, bool>) return true;
      return static_cast<T>(-1);
  }
  __builtin_unreachable();
}

/// Calls f with the function that combines two values of T.
template <class T, class F>
void visit_reduction(Reduction kind, F&& f) {
  switch (kind) {
    case Reduction::sum:
      return f([](T a, T b) { return wrapping_add(a, b); });
    case Reduction::prod:
      return f([](T a, T b) { return wrapping_mul(a, b); });
    case Reduction::max:
      return f([](T a, T b) { return max_of(a, b); });
    case Reduction::min:
      return f([](T a, T b) { return min_of(a, b); });
    case Reduction::bit_and:
    case Reduction::bit_or:
      if constexpr (!std::is_floating_point_v<T>) {
        if (kind == Reduction::bit_and) {
          return f([](T a, T b) { return static_cast<T>(a & b); });
        }
        return f([](T a, T b) { return static_cast<T>(a | b); });
      }
      BC_CHECK(false, "a bitwise reduction of floats");
  }
}

}  // namespace backcast::ops
