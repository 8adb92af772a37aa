// floor, ceil, trunc and round_even for targets without rounding instructions, and fmod: all exact.
#include "ir/loop/math_builder.h"

namespace backcast::loop::math {
namespace {

/// |x| to the nearest integer, ties to even, in the size where floats have fractions.
Val nearest_integer(Body& b, const Val& a) {
  const double unit = b.format().is_double() ? 0x1p52 : 0x1p23;
  return b.let("nearest", choose(a < unit, (a + unit) - unit, a));
}

MathFunction round_to_even(const Format& f, bool fma) {
  Body b("round_even", f, fma);
  const Val x = b.param("x");
  const Val nearest = nearest_integer(b, b.let("a", abs(x)));
  return b.finish(b.flip(nearest, b.sign_of(x)));
}

MathFunction truncate(const Format& f, bool fma) {
  Body b("trunc", f, fma);
  const Val x = b.param("x");
  const Val a = b.let("a", abs(x));
  const Val nearest = nearest_integer(b, a);
  return b.finish(b.flip(choose(nearest > a, nearest - 1.0, nearest), b.sign_of(x)));
}

/// The nearest integer with the sign of x, then one step where it lies on the wrong side.
MathFunction round_one_way(const Format& f, bool fma, bool down) {
  Body b(down ? "floor" : "ceil", f, fma);
  const Val x = b.param("x");
  const Val nearest = nearest_integer(b, b.let("a", abs(x)));
  const Val whole = b.let("whole", b.flip(nearest, b.sign_of(x)));
  const Val wrong = down ? whole > x : whole < x;
  const Val moved = choose(wrong, down ? whole - 1.0 : whole + 1.0, whole);
  // ceil(-0.5) is -0.
  return b.finish(down ? moved : b.from_bits(b.bits(moved) | b.sign_of(x)));
}
MathFunction floor(const Format& f, bool fma) { return round_one_way(f, fma, true); }
MathFunction ceil(const Format& f, bool fma) { return round_one_way(f, fma, false); }

/// A finite positive float as an integer of mantissa + 1 bits (held in a float) times 2^exponent.
struct Scaled {
  Val significand, exponent;
};
Scaled scaled(Body& b, const std::string& name, const Val& a) {
  const Format& f = b.format();
  const double smallest = f.is_double() ? 0x1p-1022 : 0x1p-126;
  const double lift = f.is_double() ? 0x1p54 : 0x1p24;
  const Val subnormal = b.let(name + "_subnormal", a < smallest);
  const Val bits = b.let(name + "_bits", b.bits(choose(subnormal, a * lift, a)));
  const Val lifted = choose(subnormal, f.is_double() ? 54 : 24, number({f.integer}, int64_t{0}));
  const Val exponent = (bits >> f.mantissa) - lifted - (f.bias + f.mantissa);
  const int64_t fraction = (int64_t{1} << f.mantissa) - 1;
  const Val significand = (bits & fraction) | ((f.bias + f.mantissa) << f.mantissa);
  return {b.let(name + "_m", b.from_bits(significand)), b.let(name + "_e", exponent)};
}

/// a * c mod m in [-m/2, m/2]; integers, |a c| <= m^2 / 4 or less than 2^(2 mantissa), exact:
/// the quotient misses the nearest integer by less than one.
Val multiply_modulo(Body& b, const std::string& name, const Val& a, const Val& c, const Val& m,
                    const Val& half) {
  const double magic = b.format().magic;
  const Pair p = b.exact_product(name, a, c);
  const Val shifted = b.let(name + "_q", p.hi / m + magic);
  const Val q = b.let(name + "_q", shifted - magic);
  const Pair back = b.exact_product(name + "_back", q, m);
  const Val r = b.let(name + "_r", ((p.hi - back.hi) - back.lo) + p.lo);
  const Val lower = b.let(name + "_r", choose(r > half, r - m, r));
  return b.let(name + "_r", choose(lower < -half, lower + m, lower));
}

/// x - y trunc(x / y), of any size: x = X 2^i, y = Y 2^j, and X 2^(i-j) mod Y by squaring, with as
/// many steps as i - j has bits.
MathFunction remainder(const Format& f, bool fma) {
  Body b("fmod", f, fma);
  const Val x = b.param("x");
  const Val y = b.param("y");
  const Val a = b.let("a", abs(x));
  const Val d = b.let("d", abs(y));
  const Scaled top = scaled(b, "x", a);
  const Scaled bottom = scaled(b, "y", d);
  const Val m = bottom.significand;
  const Val half = b.let("half", m * 0.5);
  const Val steps = b.let("steps", at_least(top.exponent - bottom.exponent, 0));
  // 2^steps mod m, bit by bit from the top.
  Val power = b.real(1);
  for (int bit = f.is_double() ? 11 : 8; bit >= 0; --bit) {
    const Val set = ((steps >> bit) & 1) != 0;
    if (bit < (f.is_double() ? 11 : 8)) {
      power = multiply_modulo(b, "square", power, power, m, half);
    }
    const Val twice = b.let("twice", power + power);
    const Val reduced = choose(twice > half, twice - m, choose(twice < -half, twice + m, twice));
    power = b.let("power", choose(set, reduced, power));
  }
  // X may be up to 2m; bring it under m/2 first.
  const Val x_less =
      b.let("x_less", choose(top.significand > m, top.significand - m, top.significand));
  const Val x_half = b.let("x_half", choose(x_less > half, x_less - m, x_less));
  const Val r = multiply_modulo(b, "last", x_half, power, m, half);
  const Val positive = b.let("positive", choose(r < 0.0, r + m, r));
  // * 2^j in two steps; exact, the result is a multiple of the smaller ulp.
  const Val e = b.let("e", bottom.exponent >> 1);
  const Val large = positive * b.power_of_two(e) * b.power_of_two(bottom.exponent - e);
  const Val size = choose(a < d, a, large);
  const Val value = b.flip(size, b.sign_of(x));
  const Val defined = (a < b.infinity()) & (d > 0.0);
  const Val ordered = b.let("ordered", defined & (y == y));
  return b.finish(choose(ordered, value, b.nan()));
}

}  // namespace

void add_rounding(Library& library, const Format& format, bool fma) {
  for (const auto& make : {round_to_even, truncate, floor, ceil, remainder}) {
    const MathFunction function = make(format, fma);
    library[function.name] = function;
  }
}

}  // namespace backcast::loop::math
