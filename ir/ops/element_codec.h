// How elements of a literal become numbers and back: the type to store, the type to compute with.
// Floating-point types all compute in double and round once when stored; integers stay exact.
#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>

#include "ir/graph/element_type.h"
#include "ir/graph/error.h"
#include "ir/graph/literal.h"

namespace backcast::ops {

/// Sets of element types, as bits.
enum Kinds : unsigned {
  kBool = 1,
  kInteger = 2,
  kFloat = 4,
  kNumeric = kInteger | kFloat,
  kBits = kBool | kInteger,
  kAny = kBool | kInteger | kFloat
};

struct BoolCodec {
  using Stored = uint8_t;
  using Value = bool;
  static constexpr unsigned kKind = kBool;
  static Value load(Stored s) { return s != 0; }
  static Stored store(Value v) { return v ? 1 : 0; }
};

template <class T>
struct IntegerCodec {
  using Stored = T;
  using Value = T;
  static constexpr unsigned kKind = kInteger;
  static Value load(Stored s) { return s; }
  static Stored store(Value v) { return v; }
};

struct FloatCodec {
  using Value = double;
  static constexpr unsigned kKind = kFloat;
};
struct F16Codec : FloatCodec {
  using Stored = uint16_t;
  static Value load(Stored s) { return f32_from_f16(s); }
  static Stored store(Value v) { return f16_from_f64(v); }
};
struct Bf16Codec : FloatCodec {
  using Stored = uint16_t;
  static Value load(Stored s) { return f32_from_bf16(s); }
  static Stored store(Value v) { return bf16_from_f64(v); }
};
struct F32Codec : FloatCodec {
  using Stored = float;
  static Value load(Stored s) { return s; }
  static Stored store(Value v) { return static_cast<float>(v); }
};
struct F64Codec : FloatCodec {
  using Stored = double;
  static Value load(Stored s) { return s; }
  static Stored store(Value v) { return v; }
};

/// Calls f with the codec of `type`.
template <class F>
decltype(auto) visit_codec(ElementType type, F&& f) {
  switch (type) {
    case ElementType::boolean:
      return f(BoolCodec{});
    case ElementType::i8:
      return f(IntegerCodec<int8_t>{});
    case ElementType::i16:
      return f(IntegerCodec<int16_t>{});
    case ElementType::i32:
      return f(IntegerCodec<int32_t>{});
    case ElementType::i64:
      return f(IntegerCodec<int64_t>{});
    case ElementType::u8:
      return f(IntegerCodec<uint8_t>{});
    case ElementType::u16:
      return f(IntegerCodec<uint16_t>{});
    case ElementType::u32:
      return f(IntegerCodec<uint32_t>{});
    case ElementType::u64:
      return f(IntegerCodec<uint64_t>{});
    case ElementType::f16:
      return f(F16Codec{});
    case ElementType::bf16:
      return f(Bf16Codec{});
    case ElementType::f32:
      return f(F32Codec{});
    case ElementType::f64:
      return f(F64Codec{});
  }
  __builtin_unreachable();
}

/// The same, only for the types of `kinds`; shape rules have refused the others.
template <unsigned kinds, class F>
void visit_codec_of(ElementType type, F&& f) {
  visit_codec(type, [&](auto codec) {
    if constexpr ((decltype(codec)::kKind & kinds) != 0) {
      f(codec);
    } else {
      BC_CHECK(false, "evaluation on {}", name_of(type));
    }
  });
}

/// Calls f with a value of the unsigned type as wide as `type`: for moving elements about.
template <class F>
decltype(auto) visit_word(ElementType type, F&& f) {
  switch (byte_size(type)) {
    case 1:
      return f(uint8_t{});
    case 2:
      return f(uint16_t{});
    case 4:
      return f(uint32_t{});
    default:
      return f(uint64_t{});
  }
}

/// A result while it is written, zero at first.
class ResultBuffer {
 public:
  /// CompileError for a negative extent and for more memory than an evaluation should take.
  ResultBuffer(ElementType element, std::vector<int64_t> shape);

  const std::vector<int64_t>& shape() const { return shape_; }
  int64_t count() const { return static_cast<int64_t>(bytes_.size()) / byte_size(element_); }
  template <class T>
  T* data() {
    return reinterpret_cast<T*>(bytes_.data());
  }
  Literal finish() { return Literal(element_, std::move(shape_), std::move(bytes_)); }

 private:
  ElementType element_;
  std::vector<int64_t> shape_;
  std::vector<std::byte> bytes_;
};

/// Number of elements; CompileError as above.
int64_t checked_element_count(ElementType element, const std::vector<int64_t>& shape);

/// An uninitialised array (vector<bool> has no bools).
template <class T>
std::unique_ptr<T[]> make_array(int64_t count) {
  return std::make_unique_for_overwrite<T[]>(static_cast<size_t>(count));
}

/// All elements as numbers.
template <class Codec>
std::unique_ptr<typename Codec::Value[]> decode(const Literal& x) {
  const int64_t count = x.element_count();
  std::unique_ptr<typename Codec::Value[]> values = make_array<typename Codec::Value>(count);
  const typename Codec::Stored* from = x.data<typename Codec::Stored>();
  for (int64_t i = 0; i < count; ++i) values[i] = Codec::load(from[i]);
  return values;
}

template <class Codec>
void encode(const typename Codec::Value* values, ResultBuffer& result) {
  typename Codec::Stored* to = result.data<typename Codec::Stored>();
  const int64_t count = result.count();
  for (int64_t i = 0; i < count; ++i) to[i] = Codec::store(values[i]);
}

/// Arithmetic: integers wrap around in their type, floats (double here) are as they are.
template <class T>
T wrapping_add(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    return a + b;
  } else {
    return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  }
}
template <class T>
T wrapping_sub(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    return a - b;
  } else {
    return static_cast<T>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
  }
}
template <class T>
T wrapping_mul(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    return a * b;
  } else {
    return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  }
}
/// A NaN in either operand is the result.
template <class T>
T min_of(T a, T b) {
  if (a != a) return a;
  return b < a || b != b ? b : a;
}
template <class T>
T max_of(T a, T b) {
  if (a != a) return a;
  return a < b || b != b ? b : a;
}

}  // namespace backcast::ops
