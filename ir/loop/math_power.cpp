// pow: 2^(y log2 x) with the logarithm and the product as unevaluated sums of two floats, so that
// results which are exact (3^4, 4^0.5) come out exact. Special cases are those of C's pow.
#include "ir/loop/math_builder.h"
#include "ir/loop/math_coefficients.h"

namespace backcast::loop::math {
namespace {

struct PowConstants {
  const double *two_thirds, *log2e, *ln2;
  double most_y, most_exponent;  // beyond these every result is 0, 1 or infinity
  double even_from;              // floats from here up are even integers
  Scalar count;
};

const PowConstants& constants_of(const Format& f) {
  static const PowConstants narrow = {kTwoThirds32, kLog2e32, kLn2Full32, 0x1p34,
                                      160,          0x1p24,   Scalar::i32};
  static const PowConstants wide = {kTwoThirds64, kLog2e64, kLn2Full64, 0x1p66,
                                    1100,         0x1p53,   Scalar::i64};
  return f.is_double() ? wide : narrow;
}

Pair pair_of(const Body& b, const double* c) { return {b.real(c[0]), b.real(c[1])}; }

Pair multiply(Body& b, const std::string& name, const Pair& x, const Pair& y) {
  const Pair p = b.exact_product(name, x.hi, y.hi);
  const Val cross = b.mad(x.hi, y.lo, b.mad(x.lo, y.hi, p.lo));
  return {p.hi, b.let(name + "_rest", cross)};
}

/// log2 of a positive finite float.
Pair log2_pair(Body& b, const Val& a) {
  const bool d = b.format().is_double();
  const PowConstants& c = constants_of(b.format());
  const SplitFloat v = split_float(b, a);
  // s = f / (2 + f), and log(1 + f) = 2s + s^3 (2/3 + s^2 P(s^2)).
  const Pair divisor = b.fast_sum("divisor", b.let("two", b.real(2)), v.fraction);
  const Val s_hi = b.let("s", v.fraction / divisor.hi);
  const Pair back = b.exact_product("back", s_hi, divisor.hi);
  const Val rest = b.mad(-s_hi, divisor.lo, (v.fraction - back.hi) - back.lo);
  const Pair s = {s_hi, b.let("s_low", rest / divisor.hi)};
  const Pair z = multiply(b, "z", s, s);
  const Val p = d ? b.polynomial(z.hi, kPow64) : b.polynomial(z.hi, kPow32);
  const Pair third = pair_of(b, c.two_thirds);
  const Pair sum = b.fast_sum("bend", third.hi, b.let("bent", z.hi * p));
  const Pair bend = {sum.hi, b.let("bend_rest", sum.lo + third.lo)};
  const Pair cube = multiply(b, "cube", multiply(b, "square", s, z), bend);
  const Pair log_sum = b.fast_sum("log", b.let("twice", s.hi * 2.0), cube.hi);
  const Pair log_pair = {log_sum.hi, b.let("log_rest", b.mad(s.lo, 2.0, cube.lo + log_sum.lo))};
  const Pair scaled = multiply(b, "scaled", log_pair, pair_of(b, c.log2e));
  const Pair total = b.fast_sum("log2", v.exponent, scaled.hi);
  return {total.hi, b.let("log2_rest", total.lo + scaled.lo)};
}

/// 2^(p.hi + p.lo).
Val exp2_pair(Body& b, const Pair& p) {
  const Format& f = b.format();
  const PowConstants& c = constants_of(f);
  const Val hi = b.let("whole", at_least(at_most(p.hi, c.most_exponent), -c.most_exponent));
  const Val lo = b.let("part", at_least(at_most(p.lo, 1.0), -1.0));
  const Val shifted = b.let("shifted", hi + f.magic);
  const Val near = b.let("near", hi - (shifted - f.magic));
  const Pair r = b.exact_sum("r", near, lo);
  const Pair q = multiply(b, "q", r, pair_of(b, c.ln2));
  const Val poly = f.is_double() ? b.polynomial(q.hi, kExp64) : b.polynomial(q.hi, kExp32);
  const Val curve = b.mad(q.hi * q.hi, poly, b.mad(q.lo, q.hi, q.lo));
  const Pair one_plus = b.fast_sum("one_plus", b.let("one", b.real(1)), q.hi);
  const Val value = one_plus.hi + (one_plus.lo + curve);
  const Val n = b.let("n", b.bits(shifted) - f.magic_bits);
  const Val half = b.let("half", n >> 1);
  return value * b.power_of_two(half) * b.power_of_two(n - half);
}

MathFunction power(const Format& f, bool fma) {
  Body b("pow", f, fma);
  const PowConstants& c = constants_of(f);
  const Val x = b.param("x");
  const Val y = b.param("y");
  const Val a = b.let("a", abs(x));
  const Val y_limited = b.let("y_limited", at_least(at_most(y, c.most_y), -c.most_y));
  const Pair log2 = log2_pair(b, a);
  const Pair p = b.exact_product("p", y_limited, log2.hi);
  const Pair product = {p.hi, b.let("p_rest", b.mad(y_limited, log2.lo, p.lo))};
  const Val regular = exp2_pair(b, product);

  // What y is: an integer, an odd one. A NaN is neither and is dealt with last.
  const Val y_size = b.let("y_size", at_most(abs(y), c.even_from));
  const Val y_number = b.let("y_number", choose(y_size >= 0.0, y_size, b.real(0)));
  const Val count = b.let("integer", cast(c.count, y_number));
  const Val whole = b.let("whole_y", cast(f.real, count) == y_number);
  const Val odd = whole & ((count & 1) != 0);
  const Val rising = b.let("rising", y > 0.0);
  const Val infinity = b.let("infinity", b.infinity());
  const Val at_zero = choose(rising, 0.0, infinity);
  const Val at_infinity = choose(rising, infinity, 0.0);
  const Val magnitude = choose(a == 0.0, at_zero, choose(a == infinity, at_infinity, regular));
  const Val sign = choose(odd, b.sign_of(x), number({f.integer}, int64_t{0}));
  const Val signed_value = b.let("signed_value", b.flip(magnitude, sign));

  const Val below = (x < 0.0) & (a < infinity);
  const Val real_value = choose(below, choose(whole, signed_value, b.nan()), signed_value);
  const Val with_nan = choose((x != x) | (y != y), x + y, real_value);
  return b.finish(choose((x == 1.0) | (y == 0.0), 1.0, with_nan));
}

}  // namespace

void add_powers(Library& library, const Format& format, bool fma) {
  const MathFunction function = power(format, fma);
  library[function.name] = function;
}

}  // namespace backcast::loop::math
