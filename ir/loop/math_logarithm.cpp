// log, log1p, asinh, acosh, atanh: x = 2^n (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)), and
// log(1 + f) = f - s (f - s^2 P(s^2)) with s = f / (2 + f).
#include "ir/loop/math_builder.h"
#include "ir/loop/math_coefficients.h"

namespace backcast::loop::math {

SplitFloat split_float(Body& b, const Val& x) {
  const Format& f = b.format();
  const double smallest = f.is_double() ? 0x1p-1022 : 0x1p-126;
  const double lift = f.is_double() ? 0x1p54 : 0x1p24;
  const int64_t root_half = f.is_double() ? 0x3fe6a09e667f3bcd : 0x3f3504f3;
  const int64_t fraction = (int64_t{1} << f.mantissa) - 1;
  const Val subnormal = b.let("subnormal", x < smallest);
  const Val normal = b.let("normal", choose(subnormal, x * lift, x));
  const Val offset = b.let("offset", b.bits(normal) - root_half);
  const Val down = choose(subnormal, f.is_double() ? -54 : -24, number({f.integer}, int64_t{0}));
  const Val n = (offset >> f.mantissa) + down;
  // The integer joins the low bits of `magic`: no conversion instruction, which f64 vectors lack.
  const Val exponent = b.let("exponent", b.from_bits(n + f.magic_bits) - f.magic);
  return {exponent, b.let("f", b.from_bits((offset & fraction) + root_half) - 1.0)};
}

namespace {

/// log(x) + low for positive normal or subnormal x; `low` much smaller, may be empty.
Val finite_log(Body& b, const Val& x, const Val* low) {
  const bool d = b.format().is_double();
  const double* ln2 = d ? kLn264 : kLn232;
  const SplitFloat v = split_float(b, x);
  const Val s = b.let("s", v.fraction / (v.fraction + 2.0));
  const Val z = b.let("z", s * s);
  const Val p = d ? b.polynomial(z, kLog64) : b.polynomial(z, kLog32);
  const Val bend = s * (v.fraction - z * p);
  const Val tail = low != nullptr ? b.mad(v.exponent, ln2[1], *low) : v.exponent * ln2[1];
  // exponent * ln2[0] is exact.
  return v.exponent * ln2[0] + (v.fraction - (bend - tail));
}

MathFunction logarithm(const Format& f, bool fma) {
  Body b("log", f, fma);
  const Val x = b.param("x");
  const Val value = finite_log(b, x, nullptr);
  const Val positive = choose(x < b.infinity(), value, x);
  const Val other = choose(x < 0.0, b.nan(), -b.infinity());
  return b.finish(choose(x <= 0.0, other, positive));
}

/// log(u) + c / u, where u + c = 1 + x exactly.
MathFunction logarithm_of_one_plus(const Format& f, bool fma) {
  Body b("log1p", f, fma);
  const Val x = b.param("x");
  const Val u = b.let("u", x + 1.0);
  const Val lost = choose(x < 1.0, x - (u - 1.0), 1.0 - (u - x));
  const Val low = b.let("low", lost / u);
  const Val value = finite_log(b, u, &low);
  const Val inside = choose(x < b.infinity(), value, x);
  const Val other = choose(x < -1.0, b.nan(), -b.infinity());
  return b.finish(choose(x <= -1.0, other, inside));
}

/// Beyond this 1 + x^2 is x^2 and the functions are log(2x).
double far_away(const Format& f) { return f.is_double() ? 0x1p60 : 0x1p30; }

Val log_two_when(const Body& b, const Val& far) {
  return choose(far, b.format().is_double() ? kLn2Full64[0] : kLn2Full32[0], b.real(0));
}

MathFunction inverse_sinh(const Format& f, bool fma) {
  Body b("asinh", f, fma);
  const Val x = b.param("x");
  const Val a = b.let("a", abs(x));
  const Val square = b.let("square", a * a);
  const Val far = b.let("far", a >= far_away(f));
  const Val near = a + square / (1.0 + sqrt(1.0 + square));
  const Val y = choose(far, a, near);
  return b.finish(b.flip(b.call("log1p", y) + log_two_when(b, far), b.sign_of(x)));
}

MathFunction inverse_cosh(const Format& f, bool fma) {
  Body b("acosh", f, fma);
  const Val x = b.param("x");
  const Val t = b.let("t", x - 1.0);
  const Val far = b.let("far", x >= far_away(f));
  const Val y = choose(far, x, t + sqrt(t * (t + 2.0)));
  return b.finish(choose(x < 1.0, b.nan(), b.call("log1p", y) + log_two_when(b, far)));
}

MathFunction inverse_tanh(const Format& f, bool fma) {
  Body b("atanh", f, fma);
  const Val x = b.param("x");
  const Val a = b.let("a", abs(x));
  const Val half = b.call("log1p", (a + a) / (1.0 - a)) * 0.5;
  return b.finish(b.flip(half, b.sign_of(x)));
}

}  // namespace

void add_logarithms(Library& library, const Format& format, bool fma) {
  for (const auto& make :
       {logarithm, logarithm_of_one_plus, inverse_sinh, inverse_cosh, inverse_tanh}) {
    const MathFunction function = make(format, fma);
    library[function.name] = function;
  }
}

}  // namespace backcast::loop::math
