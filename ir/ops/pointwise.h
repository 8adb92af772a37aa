// Shape inference and evaluation that elementwise operators share.
#pragma once

#include <cmath>

#include "ir/ops/ops.h"
#include "ir/ops/tensor.h"

namespace backcast::ops {

Type infer_same(const InferContext& c);         // one operand, any element type
Type infer_same_float(const InferContext& c);   // one float operand
Type infer_same_number(const InferContext& c);  // one operand, not bool
Type infer_same_bits(const InferContext& c);    // one operand, integer or bool
Type infer_binary(const InferContext& c);       // equal types, not bool
Type infer_binary_any(const InferContext& c);   // equal types
Type infer_binary_bits(const InferContext& c);  // equal types, integer or bool
Type infer_binary_integer(const InferContext& c);

/// result[i] = f(x[i]): floats are computed in double and rounded once.
template <class F>
Value map_unary(const EvalContext& c, const F& f) {
  TensorWriter out = result_writer(c);
  const Literal& x = c.tensor(0);
  visit_compute_type(x.element(), [&]<class T>(T) {
    for (int64_t i = 0; i < out.count(); ++i) {
      if constexpr (std::is_floating_point_v<T>) {
        out.set(i, f(static_cast<double>(element<T>(x, i))));
      } else {
        out.set(i, f(element<T>(x, i)));
      }
    }
  });
  return out.finish();
}

template <class F>
Value map_binary(const EvalContext& c, const F& f) {
  TensorWriter out = result_writer(c);
  const Literal& a = c.tensor(0);
  const Literal& b = c.tensor(1);
  visit_compute_type(a.element(), [&]<class T>(T) {
    for (int64_t i = 0; i < out.count(); ++i) {
      if constexpr (std::is_floating_point_v<T>) {
        out.set(i, f(static_cast<double>(element<T>(a, i)), static_cast<double>(element<T>(b, i))));
      } else {
        out.set(i, f(element<T>(a, i), element<T>(b, i)));
      }
    }
  });
  return out.finish();
}

/// A float function; other element types were refused by inference.
template <double (*function)(double)>
Value map_float(const EvalContext& c) {
  return map_unary(c, [](auto x) -> decltype(x) {
    if constexpr (std::is_floating_point_v<decltype(x)>) {
      return function(x);
    } else {
      return x;
    }
  });
}

/// Two's complement arithmetic without C++'s undefined overflow.
template <class T>
auto wrap(T value) {
  if constexpr (std::is_same_v<T, bool>) {
    return static_cast<unsigned>(value);
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<uint64_t>(static_cast<std::make_unsigned_t<T>>(value));
  } else {
    return value;
  }
}

/// C's % and / for integers with a zero divisor giving a and 0, and the one overflow wrapping.
template <class T>
T safe_div(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    return a / b;
  } else {
    if (b == T{}) return T{};
    if constexpr (std::is_signed_v<T>) {
      if (b == static_cast<T>(-1)) return static_cast<T>(uint64_t{0} - static_cast<uint64_t>(a));
    }
    return static_cast<T>(a / b);
  }
}

template <class T>
T safe_rem(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    return std::fmod(a, b);
  } else {
    if (b == T{}) return T{};
    if constexpr (std::is_signed_v<T>) {
      if (b == static_cast<T>(-1)) return T{};
    }
    return static_cast<T>(a % b);
  }
}

}  // namespace backcast::ops
