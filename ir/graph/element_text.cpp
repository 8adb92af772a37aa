// Numbers as text, exactly. NaNs other than the usual quiet one keep their bits in hexadecimal.
#include "ir/graph/element_text.h"

#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>

#include "ir/graph/error.h"

namespace backcast {
namespace {

template <class T>
std::string shortest(T value) {
  std::array<char, 32> buffer;
  const std::to_chars_result result =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  return std::string(buffer.data(), result.ptr);
}

std::string nan_text(uint64_t bits, uint64_t usual) {
  return bits == usual ? "nan" : fmt::format("nan(0x{:x})", bits);
}

/// Reads the whole text as a T.
template <class T>
bool whole(std::string_view text, T& value, int base = 10) {
  const char* end = text.data() + text.size();
  std::from_chars_result result{};
  if constexpr (std::is_floating_point_v<T>) {
    result = std::from_chars(text.data(), end, value);
  } else {
    result = std::from_chars(text.data(), end, value, base);
  }
  return result.ec == std::errc() && result.ptr == end;
}

/// The bits that `nan` or `nan(0x…)` stands for; 0 when it is neither.
uint64_t nan_bits(std::string_view text, uint64_t usual) {
  if (text == "nan") return usual;
  if (!text.starts_with("nan(0x") || !text.ends_with(")")) return 0;
  uint64_t bits = 0;
  return whole(text.substr(6, text.size() - 7), bits, 16) ? bits : 0;
}

template <class T>
bool store(std::span<std::byte> to, T value) {
  std::memcpy(to.data(), &value, sizeof(T));
  return true;
}

template <class T>
bool store_integer(std::string_view text, std::span<std::byte> to) {
  T value = 0;
  return whole(text, value) && store(to, value);
}

/// Reads a finite number or an infinity; NaNs are spelt by nan_bits alone.
template <class T>
bool plain_number(std::string_view text, T& value) {
  return whole(text, value) && !std::isnan(value);
}

bool is_f16_nan(uint64_t bits) { return bits <= 0xffff && (bits & 0x7fff) > 0x7c00; }
bool is_bf16_nan(uint64_t bits) { return bits <= 0xffff && (bits & 0x7fff) > 0x7f80; }
bool is_f32_nan(uint64_t bits) { return bits <= UINT32_MAX && (bits & 0x7fffffff) > 0x7f800000; }
bool is_f64_nan(uint64_t bits) { return (bits & INT64_MAX) > 0x7ff0000000000000; }

constexpr uint64_t kF16Nan = 0x7e00;
constexpr uint64_t kBf16Nan = 0x7fc0;
constexpr uint64_t kF32Nan = 0x7fc00000;
constexpr uint64_t kF64Nan = 0x7ff8000000000000;

}  // namespace

std::string double_text(double value) {
  return std::isnan(value) ? nan_text(std::bit_cast<uint64_t>(value), kF64Nan) : shortest(value);
}

bool double_from_text(std::string_view text, double& value) {
  const uint64_t bits = nan_bits(text, kF64Nan);
  if (is_f64_nan(bits)) {
    value = std::bit_cast<double>(bits);
    return true;
  }
  return plain_number(text, value);
}

std::string element_text(const Literal& literal, int64_t i) {
  const ElementType element = literal.element();
  if (element == ElementType::boolean) return literal.as_int(i) ? "true" : "false";
  if (element == ElementType::u64) return std::to_string(literal.data<uint64_t>()[i]);
  if (!is_float(element)) return std::to_string(literal.as_int(i));
  if (element == ElementType::f64) return double_text(literal.data<double>()[i]);
  if (element == ElementType::f32) {
    uint32_t bits = 0;
    std::memcpy(&bits, literal.data<float>() + i, sizeof(bits));
    return is_f32_nan(bits) ? nan_text(bits, kF32Nan) : shortest(std::bit_cast<float>(bits));
  }
  const uint16_t bits = literal.data<uint16_t>()[i];
  if (element == ElementType::f16) {
    return is_f16_nan(bits) ? nan_text(bits, kF16Nan) : shortest(f32_from_f16(bits));
  }
  return is_bf16_nan(bits) ? nan_text(bits, kBf16Nan) : shortest(f32_from_bf16(bits));
}

bool element_from_text(ElementType element, std::string_view text, std::span<std::byte> to) {
  double wide = 0;
  switch (element) {
    case ElementType::boolean:
      return (text == "true" || text == "false") && store(to, uint8_t{text == "true"});
    case ElementType::i8:
      return store_integer<int8_t>(text, to);
    case ElementType::i16:
      return store_integer<int16_t>(text, to);
    case ElementType::i32:
      return store_integer<int32_t>(text, to);
    case ElementType::i64:
      return store_integer<int64_t>(text, to);
    case ElementType::u8:
      return store_integer<uint8_t>(text, to);
    case ElementType::u16:
      return store_integer<uint16_t>(text, to);
    case ElementType::u32:
      return store_integer<uint32_t>(text, to);
    case ElementType::u64:
      return store_integer<uint64_t>(text, to);
    case ElementType::f16: {
      const uint64_t bits = nan_bits(text, kF16Nan);
      if (is_f16_nan(bits)) return store(to, static_cast<uint16_t>(bits));
      return plain_number(text, wide) && store(to, f16_from_f64(wide));
    }
    case ElementType::bf16: {
      const uint64_t bits = nan_bits(text, kBf16Nan);
      if (is_bf16_nan(bits)) return store(to, static_cast<uint16_t>(bits));
      return plain_number(text, wide) && store(to, bf16_from_f64(wide));
    }
    case ElementType::f32: {
      const uint64_t bits = nan_bits(text, kF32Nan);
      if (is_f32_nan(bits)) return store(to, static_cast<uint32_t>(bits));
      float value = 0;
      return plain_number(text, value) && store(to, value);
    }
    case ElementType::f64:
      return double_from_text(text, wide) && store(to, wide);
  }
  return false;
}

}  // namespace backcast
