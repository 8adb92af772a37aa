// Square roots without a square root instruction, correctly rounded: Newton's method, then the last
// bit from the exact integer remainder.
#include "ir/loop/math_builder.h"

namespace backcast::loop::math {
namespace {

/// A start for a in [1, 4). f64 begins with the f32 square root (an operation or a function of the
/// target), f32 with half the exponent.
Val first_guess(Body& b, const Val& a) {
  if (b.format().is_double()) return cast(Scalar::f64, sqrt(cast(Scalar::f32, a)));
  return b.from_bits((b.bits(a) >> 1) + (b.format().bias << (b.format().mantissa - 1)));
}

MathFunction square_root(const Format& f) {
  Body b("sqrt", f, false);
  const Val x = b.param("x");
  const int64_t fraction = (int64_t{1} << f.mantissa) - 1;
  const Val subnormal = b.let("subnormal", x < (f.is_double() ? 0x1p-1022 : 0x1p-126));
  const Val normal = choose(subnormal, x * (f.is_double() ? 0x1p54 : 0x1p24), x);
  const Val bits = b.let("bits", b.bits(normal));
  const Val lifted = choose(subnormal, f.is_double() ? 54 : 24, number({f.integer}, int64_t{0}));
  const Val exponent = b.let("exponent", (bits >> f.mantissa) - lifted - f.bias);
  const Val odd = b.let("odd", exponent & 1);
  const Val significand = b.let("significand", bits & fraction);
  // x = a 4^(exponent >> 1), a in [1, 4).
  const Val a = b.let("a", b.from_bits(significand | ((odd + f.bias) << f.mantissa)));
  Val s = b.let("s", first_guess(b, a));
  for (int step = f.is_double() ? 2 : 3; step > 0; --step) s = b.let("s", (s + a / s) * 0.5);
  // With root an integer of mantissa + 1 bits: root^2 against a scaled, wrapped; the difference is
  // small.
  const double unit = f.is_double() ? 0x1p52 : 0x1p23;
  const Val root = b.let("root", cast(f.integer, s * unit));
  const Val scaled = (significand | (int64_t{1} << f.mantissa)) << (odd + f.mantissa);
  const Val rest = b.let("rest", scaled - root * root);
  const Val up = choose(rest > root, 1, number({f.integer}, int64_t{0}));
  const Val down = choose(rest <= -root, 1, number({f.integer}, int64_t{0}));
  // The leading bit of root adds one to the exponent field.
  const Val field = ((exponent >> 1) + (f.bias - 1)) << f.mantissa;
  const Val value = b.from_bits(root + up - down + field);
  const Val regular = (x > 0.0) & (x < b.infinity());
  return b.finish(choose(regular, value, choose(x < 0.0, b.nan(), x)));
}

}  // namespace

void add_roots(Library& library) {
  for (const Format* format : {&f32_format(), &f64_format()}) {
    const MathFunction function = square_root(*format);
    library[function.name] = function;
  }
}

}  // namespace backcast::loop::math
