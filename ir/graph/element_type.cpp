// Names and sizes of element types; conversions between f16, bf16 and wider floats.
#include "ir/graph/element_type.h"

#include <array>
#include <bit>
#include <cmath>

#include "ir/graph/error.h"

namespace backcast {
namespace {

struct Row {
  std::string_view name;
  int64_t bytes;
  bool floating, integer, is_signed;
};

constexpr std::array<Row, kElementTypeCount> kRows = {{
    {"bool", 1, false, false, false},
    {"i8", 1, false, true, true},
    {"i16", 2, false, true, true},
    {"i32", 4, false, true, true},
    {"i64", 8, false, true, true},
    {"u8", 1, false, true, false},
    {"u16", 2, false, true, false},
    {"u32", 4, false, true, false},
    {"u64", 8, false, true, false},
    {"f16", 2, true, false, true},
    {"bf16", 2, true, false, true},
    {"f32", 4, true, false, true},
    {"f64", 8, true, false, true},
}};

const Row& row(ElementType type) {
  const size_t index = static_cast<size_t>(type);
  BC_CHECK(index < kRows.size(), "element type {} does not exist", index);
  return kRows[index];
}

/// Rounds a finite double to a 16-bit float of `fraction_bits` and the smallest normal exponent
/// `min_exponent`, to nearest, ties to even.
uint16_t narrow(double value, int fraction_bits, int min_exponent) {
  const uint64_t bits = std::bit_cast<uint64_t>(value);
  const uint16_t sign = static_cast<uint16_t>(bits >> 48 & 0x8000);
  const int biased = static_cast<int>(bits >> 52 & 0x7ff);
  const uint64_t infinity = (uint64_t{1} << 15) - (uint64_t{1} << fraction_bits);
  if (biased == 0x7ff) return static_cast<uint16_t>(sign | infinity);
  if (biased == 0) return sign;  // zero, or far below the smallest subnormal
  const int exponent = biased - 1023;
  const uint64_t significand = (bits & ((uint64_t{1} << 52) - 1)) | uint64_t{1} << 52;
  const bool subnormal = exponent < min_exponent;
  const int shift = 52 - fraction_bits + (subnormal ? min_exponent - exponent : 0);
  if (shift > 54) return sign;
  uint64_t rounded = significand >> shift;
  const uint64_t rest = significand & ((uint64_t{1} << shift) - 1);
  const uint64_t half = uint64_t{1} << (shift - 1);
  if (rest > half || (rest == half && (rounded & 1))) ++rounded;
  // A carry out of the fraction lands in the exponent, as it should.
  const int64_t exponent_field = subnormal ? 0 : exponent - min_exponent;
  const uint64_t magnitude = (static_cast<uint64_t>(exponent_field) << fraction_bits) + rounded;
  return static_cast<uint16_t>(sign | (magnitude < infinity ? magnitude : infinity));
}

}  // namespace

std::string_view name_of(ElementType type) { return row(type).name; }

std::optional<ElementType> element_type_from_name(std::string_view name) {
  for (size_t i = 0; i < kRows.size(); ++i) {
    if (kRows[i].name == name) return static_cast<ElementType>(i);
  }
  return std::nullopt;
}

int64_t byte_size(ElementType type) { return row(type).bytes; }

double lowest_value(ElementType type) {
  return is_signed(type) ? -std::ldexp(1.0, static_cast<int>(8 * byte_size(type)) - 1) : 0;
}

double largest_value(ElementType type) {
  const int bits = static_cast<int>(8 * byte_size(type)) - (is_signed(type) ? 1 : 0);
  return std::ldexp(1.0, bits) - 1;
}

bool is_float(ElementType type) { return row(type).floating; }
bool is_half(ElementType type) { return type == ElementType::f16 || type == ElementType::bf16; }
bool is_integer(ElementType type) { return row(type).integer; }
bool is_signed(ElementType type) { return row(type).is_signed; }

uint16_t f16_from_f32(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if (value != value) {  // NaN: keep sign and payload, stay a NaN
    const uint32_t payload = bits >> 13 & 0x3ff;
    return static_cast<uint16_t>((bits >> 16 & 0x8000) | 0x7c00 | (payload ? payload : 0x200));
  }
  return narrow(value, 10, -14);
}

uint16_t f16_from_f64(double value) {
  const uint64_t bits = std::bit_cast<uint64_t>(value);
  if (value != value) {
    const uint64_t payload = bits >> 42 & 0x3ff;
    return static_cast<uint16_t>((bits >> 48 & 0x8000) | 0x7c00 | (payload ? payload : 0x200));
  }
  return narrow(value, 10, -14);
}

float f32_from_f16(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16;
  const uint32_t exponent = bits >> 10 & 0x1f;
  uint32_t fraction = bits & 0x3ff;
  if (exponent == 0x1f) return std::bit_cast<float>(sign | 0x7f800000 | fraction << 13);
  if (exponent != 0) return std::bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
  const float magnitude = static_cast<float>(fraction) * 0x1p-24f;  // exact
  return sign ? -magnitude : magnitude;
}

uint16_t bf16_from_f32(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if (value != value) {
    const uint32_t payload = bits >> 16 & 0x7f;
    return static_cast<uint16_t>((bits >> 16 & 0x8000) | 0x7f80 | (payload ? payload : 0x40));
  }
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

uint16_t bf16_from_f64(double value) {
  const uint64_t bits = std::bit_cast<uint64_t>(value);
  if (value != value) {
    const uint64_t payload = bits >> 45 & 0x7f;
    return static_cast<uint16_t>((bits >> 48 & 0x8000) | 0x7f80 | (payload ? payload : 0x40));
  }
  return narrow(value, 7, -126);
}

float f32_from_bf16(uint16_t bits) { return std::bit_cast<float>(uint32_t{bits} << 16); }

}  // namespace backcast
