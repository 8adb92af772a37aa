// The running values of reductions.
#pragma once

#include <cmath>
#include <limits>

#include "ir/ops/ops.h"
#include "ir/ops/tensor.h"

namespace backcast::ops {

/// Starts as the identity; floats run in double, integers in 64 bits.
template <class T>
class Running {
 public:
  using Value = std::conditional_t<std::is_floating_point_v<T>, double,
                                   std::conditional_t<std::is_same_v<T, bool>, bool, T>>;
  explicit Running(Reduction kind) : kind_(kind), value_(identity(kind)) {}

  void add(T x) {
    switch (kind_) {
      case Reduction::sum:
        value_ = plus(value_, x);
        break;
      case Reduction::prod:
        value_ = times(value_, x);
        break;
      case Reduction::max:
        value_ = is_nan(x) || value_ < Value(x) ? Value(x) : value_;
        break;
      case Reduction::min:
        value_ = is_nan(x) || Value(x) < value_ ? Value(x) : value_;
        break;
      case Reduction::bit_and:
        value_ = bits(value_, x, true);
        break;
      case Reduction::bit_or:
        value_ = bits(value_, x, false);
        break;
    }
  }
  Value value() const { return value_; }

  static Value identity(Reduction kind) {
    using L = std::numeric_limits<T>;
    switch (kind) {
      case Reduction::sum:
      case Reduction::bit_or:
        return Value{};
      case Reduction::prod:
        return Value(1);
      case Reduction::max:
        return L::has_infinity ? -Value(L::infinity()) : Value(L::lowest());
      case Reduction::min:
        return L::has_infinity ? Value(L::infinity()) : Value(L::max());
      case Reduction::bit_and:
        return bits_set();
    }
    return Value{};
  }

 private:
  static bool is_nan(T x) {
    if constexpr (std::is_floating_point_v<T>) return std::isnan(x);
    return false;
  }
  static Value bits_set() {
    if constexpr (std::is_floating_point_v<T> || std::is_same_v<T, bool>) return Value(1);
    return static_cast<Value>(~uint64_t{0});
  }
  static Value plus(Value a, T b) {
    if constexpr (std::is_floating_point_v<T>) return a + b;
    return static_cast<Value>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  }
  static Value times(Value a, T b) {
    if constexpr (std::is_floating_point_v<T>) return a * b;
    return static_cast<Value>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  }
  static Value bits(Value a, T b, bool both) {
    if constexpr (std::is_floating_point_v<T>) return a;
    uint64_t x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);
    return static_cast<Value>(both ? x & y : x | y);
  }

  Reduction kind_;
  Value value_;
};

inline void require_reducible(Reduction kind, ElementType element) {
  bool bitwise = kind == Reduction::bit_and || kind == Reduction::bit_or;
  require(!bitwise || !is_float(element), "{} needs integers or bools, not {}", enum_name(kind),
          name_of(element));
}

}  // namespace backcast::ops
