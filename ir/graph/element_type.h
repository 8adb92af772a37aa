// Element types of tensors. f16 and bf16 are storage types: arithmetic on them goes through f32.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace backcast {

enum class ElementType : uint8_t {
  boolean,
  i8,
  i16,
  i32,
  i64,
  u8,
  u16,
  u32,
  u64,
  f16,
  bf16,
  f32,
  f64
};
inline constexpr int kElementTypeCount = 13;

/// "f32", "i64", "bool", …
std::string_view name_of(ElementType type);
std::optional<ElementType> element_type_from_name(std::string_view name);

/// Bytes of one stored element; bool takes one byte.
int64_t byte_size(ElementType type);

/// The ends of an integer type; of 64 bits to the nearest double.
double lowest_value(ElementType type);
double largest_value(ElementType type);

bool is_float(ElementType type);
bool is_half(ElementType type);     // f16 or bf16
bool is_integer(ElementType type);  // bool is not an integer
bool is_signed(ElementType type);   // floats are signed

/// IEEE binary16 and bfloat16 conversions, round to nearest even.
uint16_t f16_from_f32(float value);
uint16_t f16_from_f64(double value);  // one rounding
float f32_from_f16(uint16_t bits);
uint16_t bf16_from_f32(float value);
uint16_t bf16_from_f64(double value);  // one rounding
float f32_from_bf16(uint16_t bits);

/// Calls f with a value of the C++ type that computes on `type`: bool, int8_t … uint64_t, float,
/// double; f16 and bf16 give float.
template <class F>
decltype(auto) visit_compute_type(ElementType type, F&& f) {
  switch (type) {
    case ElementType::boolean:
      return f(bool{});
    case ElementType::i8:
      return f(int8_t{});
    case ElementType::i16:
      return f(int16_t{});
    case ElementType::i32:
      return f(int32_t{});
    case ElementType::i64:
      return f(int64_t{});
    case ElementType::u8:
      return f(uint8_t{});
    case ElementType::u16:
      return f(uint16_t{});
    case ElementType::u32:
      return f(uint32_t{});
    case ElementType::u64:
      return f(uint64_t{});
    case ElementType::f16:
    case ElementType::bf16:
    case ElementType::f32:
      return f(float{});
    case ElementType::f64:
      return f(double{});
  }
  __builtin_unreachable();
}

}  // namespace backcast
