// Building blocks of the math library: expressions written with C's operators, and a body that
// collects named values. Internal to math_*.cpp.
#pragma once

#include <map>
#include <span>
#include <string>
#include <type_traits>

#include "ir/loop/stmt.h"

namespace backcast::loop::math {

/// An expression; a number beside it becomes a constant of its type.
struct Val {
  Expr expr;
  const Type& type() const { return expr.type(); }
};

template <class T>
concept Number = std::is_arithmetic_v<T>;

Val number(Type type, double value);
Val number(Type type, int64_t value);
template <Number T>
Val like(const Val& v, T value) {
  if constexpr (std::is_floating_point_v<T>) return number(v.type(), static_cast<double>(value));
  return number(v.type(), static_cast<int64_t>(value));
}
Val apply(Op op, const Val& a, const Val& b);

#define BACKCAST_MATH_OPERATOR(symbol, op)                                               \
  inline Val operator symbol(const Val& a, const Val& b) { return apply(Op::op, a, b); } \
  template <Number T>                                                                    \
  Val operator symbol(const Val& a, T b) {                                               \
    return apply(Op::op, a, like(a, b));                                                 \
  }                                                                                      \
  template <Number T>                                                                    \
  Val operator symbol(T a, const Val& b) {                                               \
    return apply(Op::op, like(b, a), b);                                                 \
  }
BACKCAST_MATH_OPERATOR(+, add)
BACKCAST_MATH_OPERATOR(-, sub)
BACKCAST_MATH_OPERATOR(*, mul)
BACKCAST_MATH_OPERATOR(/, div)
BACKCAST_MATH_OPERATOR(&, bit_and)
BACKCAST_MATH_OPERATOR(|, bit_or)
BACKCAST_MATH_OPERATOR(^, bit_xor)
BACKCAST_MATH_OPERATOR(<<, shl)
BACKCAST_MATH_OPERATOR(>>, shr)
BACKCAST_MATH_OPERATOR(==, eq)
BACKCAST_MATH_OPERATOR(!=, ne)
BACKCAST_MATH_OPERATOR(<, lt)
BACKCAST_MATH_OPERATOR(<=, le)
BACKCAST_MATH_OPERATOR(>, gt)
BACKCAST_MATH_OPERATOR(>=, ge)
#undef BACKCAST_MATH_OPERATOR

Val operator-(const Val& a);
Val abs(const Val& a);
Val sqrt(const Val& a);
Val choose(const Val& condition, const Val& a, const Val& b);
template <Number T>
Val choose(const Val& condition, T a, const Val& b) {
  return choose(condition, like(b, a), b);
}
template <Number T>
Val choose(const Val& condition, const Val& a, T b) {
  return choose(condition, a, like(a, b));
}
/// min(limit, a) and max(limit, a) that keep a NaN in `a`.
template <Number T>
Val at_most(const Val& a, T limit) {
  return apply(Op::min, like(a, limit), a);
}
template <Number T>
Val at_least(const Val& a, T limit) {
  return apply(Op::max, like(a, limit), a);
}
Val cast(Scalar to, const Val& a);
Val bitcast(Scalar to, const Val& a);

/// What differs between f32 and f64.
struct Format {
  std::string suffix;       // ".f32"
  Scalar real, integer;     // f32, i32
  int64_t width, mantissa;  // 32, 23
  int64_t bias;             // 127
  /// 1.5 * 2^mantissa: adding it rounds |v| <= 2^(mantissa-1) to an integer, left in the low bits.
  double magic;
  int64_t magic_bits;
  int64_t sign_bit;  // as a signed integer of `width` bits
  bool is_double() const { return width == 64; }
};
const Format& f32_format();
const Format& f64_format();

/// A value as an unevaluated sum of two, |lo| <= ulp(hi).
struct Pair {
  Val hi, lo;
};

/// A function under construction. What is used more than once must be a `let`: finish() checks it.
class Body {
 public:
  Body(const std::string& base_name, const Format& format, bool fma);

  const Format& format() const { return *format_; }
  bool fma() const { return fma_; }
  Val param(const std::string& name);
  Val param(const std::string& name, Scalar scalar);
  Val let(const std::string& name, const Val& value);
  MathFunction finish(const Val& result);

  /// a * b + c, fused where allowed.
  Val mad(const Val& a, const Val& b, const Val& c) const;
  template <Number T>
  Val mad(const Val& a, T b, const Val& c) const {
    return mad(a, like(a, b), c);
  }
  template <Number T>
  Val mad(const Val& a, const Val& b, T c) const {
    return mad(a, b, like(a, c));
  }
  /// c[0] + c[1] x + …; x must be a let or a parameter.
  Val polynomial(const Val& x, std::span<const double> c) const;
  /// The same as (c[0] + c[1] x) + x² ((c[2] + c[3] x) + …), half as many steps waiting for each
  /// other; x2 = x² must be a let, too.
  Val polynomial(const Val& x, const Val& x2, std::span<const double> c) const;
  /// a + b and a * b without error; fast_sum needs |a| >= |b| or exact cancellation.
  Pair fast_sum(const std::string& name, const Val& a, const Val& b);
  Pair exact_sum(const std::string& name, const Val& a, const Val& b);
  Pair exact_product(const std::string& name, const Val& a, const Val& b);

  Val real(double value) const { return number({format_->real}, value); }
  Val bits(const Val& a) const { return bitcast(format_->integer, a); }
  Val from_bits(const Val& a) const { return bitcast(format_->real, a); }
  Val infinity() const;
  Val nan() const;
  /// The sign bit of a, alone; a with its sign flipped where `sign` is set.
  Val sign_of(const Val& a) const { return bits(a) & format_->sign_bit; }
  Val flip(const Val& a, const Val& sign) const { return from_bits(bits(a) ^ sign); }
  /// 2^exponent, for exponents of normal numbers.
  Val power_of_two(const Val& exponent) const;
  Val call(const std::string& base_name, const Val& a) const;

 private:
  Val upper_half(const Val& a) const;

  MathFunction function_;
  const Format* format_;
  bool fma_;
  std::map<std::string, int> names_;
};

/// A positive x as 2^exponent (1 + fraction), 1 + fraction in [sqrt(1/2), sqrt(2)), both floats.
struct SplitFloat {
  Val exponent, fraction;
};
SplitFloat split_float(Body& b, const Val& x);

using Library = std::map<std::string, MathFunction>;
void add_exponentials(Library& library, const Format& format, bool fma);
void add_logarithms(Library& library, const Format& format, bool fma);
void add_powers(Library& library, const Format& format, bool fma);
void add_trigonometry(Library& library, const Format& format, bool fma);
void add_rounding(Library& library, const Format& format, bool fma);
void add_roots(Library& library);
void add_conversions(Library& library);

}  // namespace backcast::loop::math
