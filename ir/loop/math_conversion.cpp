// f16 and bf16, as u16 bit patterns, from and to wider floats: integer arithmetic, round to nearest
// even, subnormals kept, NaN stays NaN.
#include "ir/loop/math_builder.h"

namespace backcast::loop::math {
namespace {

struct Small {
  std::string name;
  int64_t mantissa, bias;
};
const Small kHalf = {"f16", 10, 15};
const Small kBfloat = {"bf16", 7, 127};

/// Conversions carry both types in their own names.
Format nameless(Format format) {
  format.suffix.clear();
  return format;
}

/// (v + just below half + lowest kept bit) >> shift: nearest, ties to even.
Val round_shift(const Val& v, const Val& shift) {
  const Val one = like(v, 1);
  return (v + (((one << (shift - 1)) - 1) + ((v >> shift) & 1))) >> shift;
}

MathFunction narrow(const Small& to, const Format& from) {
  const Format plain = nameless(from);
  Body b(to.name + "_from_" + from.suffix.substr(1), plain, false);
  const Val x = b.param("x");
  const int64_t drop = from.mantissa - to.mantissa;
  const int64_t rebias = from.bias - to.bias;
  const int64_t top = 2 * to.bias + 1;  // the exponent of infinity
  const Val bits = b.let("bits", b.bits(x));
  const Val size = b.let("size", bits & ~from.sign_bit);
  const Val normal = b.let("normal", size - (rebias << from.mantissa));
  Val result = round_shift(normal, like(normal, drop));
  if (rebias > 0) {
    // Below the smallest normal number the unit stays, so more bits go.
    const int64_t hidden = int64_t{1} << from.mantissa;
    const Val significand = b.let("significand", (size & (hidden - 1)) | hidden);
    const Val wanted = (rebias + 1 + drop) - (size >> from.mantissa);
    const Val shift = b.let("shift", at_least(at_most(wanted, from.mantissa + 2), 1));
    const Val subnormal = round_shift(significand, shift);
    result = choose(size < ((rebias + 1) << from.mantissa), subnormal, result);
    result = choose(size < ((rebias + top) << from.mantissa), result, top << to.mantissa);
  }
  const int64_t infinity = (2 * from.bias + 1) << from.mantissa;
  // A NaN keeps what fits of its payload.
  const Val payload = b.let("payload", (size >> drop) & ((int64_t{1} << to.mantissa) - 1));
  const Val some = choose(payload == 0, int64_t{1} << (to.mantissa - 1), payload);
  const Val magnitude = choose(size > infinity, some | (top << to.mantissa), result);
  const Val sign = (bits >> (from.width - 16)) & 0x8000;
  return b.finish(cast(Scalar::u16, magnitude | sign));
}

MathFunction widen_half() {
  const Format plain = nameless(f32_format());
  Body b("f32_from_f16", plain, false);
  const Val bits = b.let("bits", cast(Scalar::i32, b.param("h", Scalar::u16)));
  const Val size = b.let("size", bits & 0x7fff);
  const Val moved = b.let("moved", size << 13);
  const Val normal = b.from_bits(moved + (int64_t{112} << 23));
  const Val special = b.from_bits(moved + (int64_t{224} << 23));
  const Val subnormal = cast(Scalar::f32, size) * 0x1p-24;
  const Val magnitude = choose(size < 0x400, subnormal, choose(size < 0x7c00, normal, special));
  return b.finish(b.flip(magnitude, (bits & 0x8000) << 16));
}

MathFunction widen_bfloat() {
  const Format plain = nameless(f32_format());
  Body b("f32_from_bf16", plain, false);
  return b.finish(b.from_bits(cast(Scalar::i32, b.param("h", Scalar::u16)) << 16));
}

}  // namespace

void add_conversions(Library& library) {
  for (const MathFunction& function :
       {narrow(kHalf, f32_format()), narrow(kHalf, f64_format()), narrow(kBfloat, f32_format()),
        narrow(kBfloat, f64_format()), widen_half(), widen_bfloat()}) {
    library[function.name] = function;
  }
}

}  // namespace backcast::loop::math
