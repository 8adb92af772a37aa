// exp, expm1, sinh, cosh, tanh, sigmoid and erf: all rest on e^x = 2^n e^r with |r| <= ln(2)/2.
#include <cmath>

#include "ir/loop/math_builder.h"
#include "ir/loop/math_coefficients.h"

namespace backcast::loop::math {
namespace {

/// e^x = 2^n (1 + m); x within the exponents that power_of_two() can make of n/2. `shifted` is n in
/// the low bits of a float.
struct Reduced {
  Val shifted, m;
};

/// `rest`: what rounding x left, or null.
Reduced reduce(Body& b, const Val& x, const Val* rest = nullptr) {
  const Format& f = b.format();
  const bool d = f.is_double();
  const double log2e = d ? kLog2e64[0] : kLog2e32[0];
  // Without fma, n * hi must be exact; with it the nearest value is better.
  const double* ln2 = d ? (b.fma() ? kLn2Full64 : kLn264) : (b.fma() ? kLn2Full32 : kLn232);
  const Val shifted = b.let("shifted", b.mad(x, log2e, like(x, f.magic)));
  const Val count = b.let("count", shifted - f.magic);
  const Val r = b.let("r", b.mad(count, -ln2[1], b.mad(count, -ln2[0], x)));
  const Val r2 = b.let("r2", r * r);
  const Val q = d ? b.polynomial(r, r2, kExp64) : b.polynomial(r, r2, kExp32);
  const Val m = b.let("m", rest == nullptr ? b.mad(r2, q, r) : b.mad(r2, q, *rest) + r);
  return {shifted, m};
}

Val integer_of(Body& b, const Reduced& e) {
  return b.let("n", b.bits(e.shifted) - b.format().magic_bits);
}

/// 2^(n + more), for exponents of normal numbers: the low bits move up, what lies above them goes.
Val power_of(const Body& b, const Reduced& e, int64_t more = 0) {
  const Format& f = b.format();
  return b.from_bits((b.bits(e.shifted) << f.mantissa) + ((f.bias + more) << f.mantissa));
}

/// value * 2^(n + more) in two steps, so that neither factor leaves the normal range.
Val scale(Body& b, const Val& value, const Val& n, int64_t more = 0) {
  const Val half = b.let("half", n >> 1);
  const Val rest = more == 0 ? n - half : n - half + more;
  return value * b.power_of_two(half) * b.power_of_two(rest);
}

MathFunction exponential(const Format& f, bool fma) {
  Body b("exp", f, fma);
  const Val x = b.param("x");
  const Val limited = b.let("limited", f.is_double() ? at_least(at_most(x, 710.0), -746.0)
                                                     : at_least(at_most(x, 89.0), -104.0));
  const Reduced e = reduce(b, limited);
  return b.finish(scale(b, 1.0 + e.m, integer_of(b, e)));
}

MathFunction exponential_minus_one(const Format& f, bool fma) {
  Body b("expm1", f, fma);
  const Val x = b.param("x");
  const Val limited = b.let("limited", f.is_double() ? at_least(at_most(x, 710.0), -40.0)
                                                     : at_least(at_most(x, 89.0), -18.0));
  const Reduced e = reduce(b, limited);
  const Val n = integer_of(b, e);
  // 2^n ((1 - 2^-n) + m); 2^-n is 0 when it would be subnormal.
  const Val inverse = b.from_bits(at_least(f.bias - n, 0) << f.mantissa);
  return b.finish(scale(b, (1.0 - inverse) + e.m, n));
}

/// e^a / 2, a >= 0, without an early overflow.
Val half_exponential(Body& b, const Val& a) {
  const Val limited = b.let("limited", at_most(a, b.format().is_double() ? 711.0 : 90.0));
  const Reduced e = reduce(b, limited);
  return b.let("half_e", scale(b, 1.0 + e.m, integer_of(b, e), -1));
}

MathFunction hyperbolic_sine(const Format& f, bool fma) {
  Body b("sinh", f, fma);
  const Val x = b.param("x");
  const Val a = b.let("a", abs(x));
  const Val e = half_exponential(b, a);
  const Val z = b.let("z", a * a);
  const Val p = f.is_double() ? b.polynomial(z, kSinh64) : b.polynomial(z, kSinh32);
  const Val magnitude = choose(a < 1.0, b.mad(a * z, p, a), e - 0.25 / e);
  return b.finish(b.flip(magnitude, b.sign_of(x)));
}

MathFunction hyperbolic_cosine(const Format& f, bool fma) {
  Body b("cosh", f, fma);
  const Val a = b.let("a", abs(b.param("x")));
  const Val e = half_exponential(b, a);
  return b.finish(e + 0.25 / e);
}

/// tanh a = w / (2 - w) with w = 1 - e^(-2a).
MathFunction hyperbolic_tangent(const Format& f, bool fma) {
  Body b("tanh", f, fma);
  const Val x = b.param("x");
  const Val limited = b.let("limited", at_most(abs(x), f.is_double() ? 22.0 : 10.0) * -2.0);
  const Reduced e = reduce(b, limited);
  const Val power = b.let("power", power_of(b, e));
  const Val w = b.let("w", b.mad(-power, e.m, 1.0 - power));
  return b.finish(b.flip(w / (2.0 - w), b.sign_of(x)));
}

/// e = e^-|x| cannot overflow: 1 / (1 + e) or e / (1 + e). Its power of two is made too large by a
/// constant, so that e may be subnormal.
MathFunction sigmoid(const Format& f, bool fma) {
  Body b("sigmoid", f, fma);
  const Val x = b.param("x");
  const int64_t more = f.is_double() ? 60 : 30;
  const Val limited = b.let("limited", at_least(-abs(x), f.is_double() ? -746.0 : -104.0));
  const Reduced r = reduce(b, limited);
  const Val large = (1.0 + r.m) * power_of(b, r, more);
  const Val e = b.let("e", large * std::ldexp(1.0, -static_cast<int>(more)));
  return b.finish(choose(x < 0.0, e, 1.0) / (1.0 + e));
}

/// erf a = 1 - e^q with q = log(erfc a) = a p(a) - a, without cancellation near 0.
MathFunction error_function(const Format& f, bool fma) {
  Body b("erf", f, fma);
  const Val x = b.param("x");
  const Val a = b.let("a", at_most(abs(x), f.is_double() ? 5.95 : 3.95));
  const Val a2 = b.let("a2", a * a);
  const Val p = f.is_double() ? b.polynomial(a, a2, kErf64) : b.polynomial(a, a2, kErf32);
  Reduced e;
  if (fma) {
    e = reduce(b, b.let("q", b.mad(a, p, -a)));
  } else {
    const Val t = b.let("t", a * p);
    const Val q = b.let("q", t - a);
    // Where erf a is little more than half of q, q's rounding is an error of twice its size.
    const Val rest = t - (q + a);
    e = reduce(b, q, &rest);
  }
  const Val power = b.let("power", power_of(b, e));
  return b.finish(b.flip(b.mad(-power, e.m, 1.0 - power), b.sign_of(x)));
}

}  // namespace

void add_exponentials(Library& library, const Format& format, bool fma) {
  for (const auto& make : {exponential, exponential_minus_one, hyperbolic_sine, hyperbolic_cosine,
                           hyperbolic_tangent, sigmoid, error_function}) {
    const MathFunction function = make(format, fma);
    library[function.name] = function;
  }
}

}  // namespace backcast::loop::math
