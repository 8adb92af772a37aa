// sin, cos, tan and their inverses. Angles are reduced by Cody and Waite's method: pi/2 in parts
// short enough for exact products (or fma), the rounding of the last steps carried along, so that
// the reduced angle is right to the last bit for |x| <= 1e5.
#include "ir/loop/math_builder.h"
#include "ir/loop/math_coefficients.h"

namespace backcast::loop::math {
namespace {

/// |x| = quadrant * pi/2 + r; the low two bits of `quadrant` count, |r| <= pi/4 (clamped to 1 for
/// arguments too large to be reduced).
struct Angle {
  Val quadrant, r;
};

/// r - count * part, its rounding error added to `low` (empty at first).
void subtract(Body& b, const Val& count, double part, bool exact, Val& r, Val& low) {
  const Val before = r;
  const Pair w =
      exact ? Pair{b.let("w", count * part), {}} : b.exact_product("w", count, like(count, part));
  r = b.let("r", before - w.hi);
  Val error = (before - r) - w.hi;
  if (!exact) error = error - w.lo;
  low = b.let("low", low.expr ? low + error : error);
}

Angle reduce_angle(Body& b, const Val& a) {
  const Format& f = b.format();
  const bool d = f.is_double();
  const double two_over_pi = 0x1.45f306dc9c883p-1;
  const Val shifted = b.let("shifted", b.mad(a, two_over_pi, like(a, f.magic)));
  const Val count = b.let("count", shifted - f.magic);
  Val r = a;
  Val low;
  if (b.fma()) {
    const double* parts = d ? kHalfPi64 : kHalfPi32;
    r = b.let("r", b.mad(count, -parts[0], a));  // exact
    subtract(b, count, parts[1], false, r, low);
    low = b.let("low", b.mad(count, -parts[2], low));
  } else {
    const std::span<const double> parts =
        d ? std::span<const double>(kHalfPiParts64) : std::span<const double>(kHalfPiParts32);
    const size_t free_of_error = d ? 1 : 3;  // the difference still fits the format
    for (size_t i = 0; i < free_of_error; ++i) r = b.let("r", r - count * parts[i]);
    for (size_t i = free_of_error; i + 1 < parts.size(); ++i) {
      subtract(b, count, parts[i], true, r, low);
    }
    low = b.let("low", low - count * parts.back());
  }
  const Val sum = r + low;
  return {b.bits(shifted), b.let("angle", at_least(at_most(sum, 1.0), -1.0))};
}

struct SineCosine {
  Val quadrant, sine, cosine;
};

SineCosine sine_and_cosine(Body& b, const Val& a) {
  const bool d = b.format().is_double();
  const Angle v = reduce_angle(b, a);
  const Val q = b.let("quadrant", v.quadrant);
  const Val z = b.let("z", v.r * v.r);
  const Val ps = d ? b.polynomial(z, kSin64) : b.polynomial(z, kSin32);
  const Val pc = d ? b.polynomial(z, kCos64) : b.polynomial(z, kCos32);
  const Val sine = b.let("sine", b.mad(v.r * z, ps, v.r));
  const Val cosine = b.let("cosine", b.mad(z * z, pc, b.mad(z, -0.5, b.real(1))));
  return {q, sine, cosine};
}

Val is_odd(const Val& quadrant) { return (quadrant & 1) != 0; }

MathFunction sine(const Format& f, bool fma) {
  Body b("sin", f, fma);
  const Val x = b.param("x");
  const SineCosine v = sine_and_cosine(b, b.let("a", abs(x)));
  const Val sign = ((v.quadrant & 2) << (f.width - 2)) ^ b.sign_of(x);
  return b.finish(b.flip(choose(is_odd(v.quadrant), v.cosine, v.sine), sign));
}

MathFunction cosine(const Format& f, bool fma) {
  Body b("cos", f, fma);
  const Val x = b.param("x");
  const SineCosine v = sine_and_cosine(b, b.let("a", abs(x)));
  const Val sign = ((v.quadrant + 1) & 2) << (f.width - 2);
  return b.finish(b.flip(choose(is_odd(v.quadrant), v.sine, v.cosine), sign));
}

MathFunction tangent(const Format& f, bool fma) {
  Body b("tan", f, fma);
  const Val x = b.param("x");
  const SineCosine v = sine_and_cosine(b, b.let("a", abs(x)));
  const Val odd = b.let("odd", is_odd(v.quadrant));
  const Val ratio = choose(odd, v.cosine, v.sine) / choose(odd, v.sine, v.cosine);
  const Val sign = (v.quadrant << (f.width - 1)) ^ b.sign_of(x);
  return b.finish(b.flip(ratio, sign));
}

/// asin(t) for |t| <= 1/2, with z = t^2.
Val short_asin(Body& b, const Val& t, const Val& z) {
  const Val p = b.format().is_double() ? b.polynomial(z, kAsin64) : b.polynomial(z, kAsin32);
  return b.let("arc", b.mad(t * z, p, t));
}

const double* half_pi(const Format& f) { return f.is_double() ? kHalfPi64 : kHalfPi32; }

/// Above 1/2: asin(a) = pi/2 - 2 asin(sqrt((1 - a) / 2)).
MathFunction inverse_sine(const Format& f, bool fma) {
  Body b("asin", f, fma);
  const Val x = b.param("x");
  const Val a = b.let("a", abs(x));
  const Val large = b.let("large", a > 0.5);
  const Val z = b.let("z", choose(large, (1.0 - a) * 0.5, a * a));
  const Val t = b.let("t", choose(large, sqrt(z), a));
  const Val arc = short_asin(b, t, z);
  const Val far = half_pi(f)[0] - (arc * 2.0 - half_pi(f)[1]);
  return b.finish(b.flip(choose(large, far, arc), b.sign_of(x)));
}

MathFunction inverse_cosine(const Format& f, bool fma) {
  Body b("acos", f, fma);
  const Val x = b.param("x");
  const Val a = b.let("a", abs(x));
  const Val large = b.let("large", a > 0.5);
  const Val z = b.let("z", choose(large, (1.0 - a) * 0.5, a * a));
  const Val t = b.let("t", choose(large, sqrt(z), x));
  const Val arc = short_asin(b, t, z);
  const Val twice = b.let("twice", arc * 2.0);
  const double* c = half_pi(f);
  const Val near_minus_one = c[0] * 2.0 - (twice - c[1] * 2.0);
  const Val middle = c[0] - (arc - c[1]);
  return b.finish(choose(large, choose(x < 0.0, near_minus_one, twice), middle));
}

/// Around 0, 1 and infinity: atan(a) = base + atan(t), |t| <= tan(pi/8).
MathFunction inverse_tangent(const Format& f, bool fma) {
  Body b("atan", f, fma);
  const Val x = b.param("x");
  const Val a = b.let("a", abs(x));
  const Val middle = b.let("middle", a > 0.41421356237309503);
  const Val far = b.let("far", a > 2.414213562373095);
  const Val over = choose(far, -1.0, choose(middle, a - 1.0, a));
  const Val under = choose(far, a, choose(middle, a + 1.0, b.real(1)));
  const Val t = b.let("t", over / under);
  const Val z = b.let("z", t * t);
  const Val p = f.is_double() ? b.polynomial(z, kAtan64) : b.polynomial(z, kAtan32);
  const Val arc = b.mad(t * z, p, t);
  const double* c = half_pi(f);
  const Val base = choose(far, c[0], choose(middle, c[0] * 0.5, b.real(0)));
  const Val rest = choose(far, c[1], choose(middle, c[1] * 0.5, b.real(0)));
  return b.finish(b.flip(base + (arc + rest), b.sign_of(x)));
}

}  // namespace

void add_trigonometry(Library& library, const Format& format, bool fma) {
  for (const auto& make : {sine, cosine, tangent, inverse_sine, inverse_cosine, inverse_tangent}) {
    const MathFunction function = make(format, fma);
    library[function.name] = function;
  }
}

}  // namespace backcast::loop::math
