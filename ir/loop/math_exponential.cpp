// exp, expm1, sinh, cosh, tanh, sigmoid and erf: all but the last of f32 rest on e^x = 2^n e^r with
// |r| <= ln(2)/2.
#include <cmath>
#include <utility>

#include "ir/loop/math_builder.h"
#include "ir/loop/math_coefficients.h"

namespace backcast::loop::math {
namespace {

/// e^x = 2^n (1 + m). `shifted` is n + `bias` in the low bits of a float: what is to be added to an
/// exponent is there from the start.
struct Reduced {
  Val shifted, m;
};

/// `rest`: what rounding x left, or null.
Reduced reduce(Body& b, const Val& x, int64_t bias, const Val* rest = nullptr) {
  const Format& f = b.format();
  const bool d = f.is_double();
  const double log2e = d ? kLog2e64[0] : kLog2e32[0];
  const double magic = f.magic + static_cast<double>(bias);
  // Without fma, n * hi must be exact; with it the nearest value is better.
  const double* ln2 = d ? (b.fma() ? kLn2Full64 : kLn264) : (b.fma() ? kLn2Full32 : kLn232);
  const Val shifted = b.let("shifted", b.mad(x, log2e, like(x, magic)));
  const Val count = b.let("count", shifted - magic);
  const Val r = b.let("r", b.mad(count, -ln2[1], b.mad(count, -ln2[0], x)));
  const Val r2 = b.let("r2", r * r);
  const Val q = d ? b.polynomial(r, r2, kExp64) : b.polynomial(r, r2, kExp32);
  const Val m = b.let("m", rest == nullptr ? b.mad(r2, q, r) : b.mad(r2, q, *rest) + r);
  return {shifted, m};
}

/// 2^n, for exponents of normal numbers, of e reduced with the format's bias: the low bits move up,
/// what lies above them goes.
Val power_of(const Body& b, const Reduced& e) {
  return b.from_bits(b.bits(e.shifted) << b.format().mantissa);
}

/// 2^n as two factors, so that neither leaves the normal range, of e reduced with twice the bias.
std::pair<Val, Val> powers_of(Body& b, const Reduced& e) {
  const Format& f = b.format();
  const int64_t exponent = -(int64_t{1} << f.mantissa);
  const Val half = b.let("half", (b.bits(e.shifted) << (f.mantissa - 1)) & exponent);
  return {b.from_bits(half), b.from_bits((b.bits(e.shifted) << f.mantissa) - half)};
}

/// e^x as reduced with twice the bias.
Val power(Body& b, const Reduced& e) {
  const auto [first, second] = powers_of(b, e);
  if (!b.fma()) return (1.0 + e.m) * first * second;
  const Val factor = b.let("factor", first);
  return b.mad(factor, e.m, factor) * second;
}

MathFunction exponential(const Format& f, bool fma) {
  Body b("exp", f, fma);
  const Val x = b.param("x");
  // From the lower bound on both powers of two are zero: what a mask takes out of a softmax is an
  // exact product, where a tiny one would cost x86 a hundred cycles.
  const Val limited = b.let("limited", f.is_double() ? at_least(at_most(x, 710.0), -1418.0)
                                                     : at_least(at_most(x, 89.0), -176.0));
  return b.finish(power(b, reduce(b, limited, 2 * f.bias)));
}

MathFunction exponential_minus_one(const Format& f, bool fma) {
  Body b("expm1", f, fma);
  const Val x = b.param("x");
  const Val limited = b.let("limited", f.is_double() ? at_least(at_most(x, 710.0), -40.0)
                                                     : at_least(at_most(x, 89.0), -18.0));
  const Reduced e = reduce(b, limited, 2 * f.bias);
  // 2^n ((1 - 2^-n) + m); 2^-n is 0 when it would be subnormal.
  const Val exponent = at_least(f.magic_bits + 3 * f.bias - b.bits(e.shifted), 0);
  const Val inverse = b.from_bits(exponent << f.mantissa);
  const auto [first, second] = powers_of(b, e);
  return b.finish(((1.0 - inverse) + e.m) * first * second);
}

/// e^a / 2, a >= 0, without an early overflow.
Val half_exponential(Body& b, const Val& a) {
  const Format& f = b.format();
  const Val limited = b.let("limited", at_most(a, f.is_double() ? 711.0 : 90.0));
  return b.let("half_e", power(b, reduce(b, limited, 2 * f.bias - 1)));
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
  const Reduced e = reduce(b, limited, f.bias);
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
  const Reduced r = reduce(b, limited, f.bias + more);
  const Val large = (1.0 + r.m) * power_of(b, r);
  const Val e = b.let("e", large * std::ldexp(1.0, -static_cast<int>(more)));
  return b.finish(choose(x < 0.0, e, 1.0) / (1.0 + e));
}

/// erf a = 1 - (1 - u/2)^2 with u = 2 - 2 sqrt(erfc a) = a + a p(a): no cancellation near 0, and
/// the square makes u's errors small where erf a is nearly 1.
MathFunction error_function_by_root(const Format& f, bool fma) {
  Body b("erf", f, fma);
  const Val x = b.param("x");
  const Val a = b.let("a", at_most(abs(x), 3.95));
  const Val a2 = b.let("a2", a * a);
  const Val u = b.let("u", b.mad(a, b.polynomial(a, a2, kErf32), a));
  return b.finish(b.flip(b.mad(u * -0.25, u, u), b.sign_of(x)));
}

/// erf a = 1 - e^q with q = log(erfc a) = a p(a) - a: for f64, where the terms of the root's
/// polynomial would be large and cancel.
MathFunction error_function_by_logarithm(const Format& f, bool fma) {
  Body b("erf", f, fma);
  const Val x = b.param("x");
  const Val a = b.let("a", at_most(abs(x), 5.95));
  const Val a2 = b.let("a2", a * a);
  const Val p = b.polynomial(a, a2, kErf64);
  Reduced e;
  if (fma) {
    e = reduce(b, b.let("q", b.mad(a, p, -a)), f.bias);
  } else {
    const Val t = b.let("t", a * p);
    const Val q = b.let("q", t - a);
    // Where erf a is little more than half of q, q's rounding is an error of twice its size.
    const Val rest = t - (q + a);
    e = reduce(b, q, f.bias, &rest);
  }
  const Val power = b.let("power", power_of(b, e));
  return b.finish(b.flip(b.mad(-power, e.m, 1.0 - power), b.sign_of(x)));
}

MathFunction error_function(const Format& f, bool fma) {
  return f.is_double() ? error_function_by_logarithm(f, fma) : error_function_by_root(f, fma);
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
