// Constant data: an immutable, shared block of bytes with a static tensor type and a content hash.
// Copying a Literal copies a handle. The bytes may be memory that a file mapping owns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ir/graph/type.h"

namespace backcast {

class Literal {
 public:
  Literal() = default;
  /// Copies `bytes` (row-major, host byte order, bool as one byte 0 or 1; f16/bf16 as bit
  /// patterns).
  Literal(ElementType element, std::vector<int64_t> shape, std::vector<std::byte> bytes);
  /// Refers to memory that `owner` keeps alive (a memory-mapped file).
  Literal(ElementType element, std::vector<int64_t> shape, std::span<const std::byte> bytes,
          std::shared_ptr<const void> owner);

  /// A double becomes an integer by truncation with saturation (NaN: 0), a bool by != 0.
  static Literal scalar(ElementType element, double value);
  static Literal from_doubles(ElementType element, std::vector<int64_t> shape,
                              const std::vector<double>& values);
  static Literal from_ints(std::vector<int64_t> shape, const std::vector<int64_t>& values);  // i64

  ElementType element() const { return element_; }
  const std::vector<int64_t>& shape() const { return shape_; }
  int64_t element_count() const;
  TensorType type() const;
  std::span<const std::byte> bytes() const { return bytes_; }
  template <class T>
  const T* data() const {
    return reinterpret_cast<const T*>(bytes_.data());
  }

  /// Element i as a double or an integer, whatever the element type. Floats become integers by
  /// truncation with saturation (NaN: 0); a u64 above the maximum of an i64 wraps.
  double as_double(int64_t i) const;
  int64_t as_int(int64_t i) const;
  std::vector<int64_t> as_ints() const;
  std::vector<double> as_doubles() const;
  /// The same values in another type, by way of doubles (as `from_doubles` stores them).
  Literal converted_to(ElementType element) const;
  bool is_splat(double value) const;  // every element equals value

  /// FNV-1a-style 64-bit hash of type and bytes, computed once, lazily.
  uint64_t hash() const;
  friend bool operator==(const Literal& a, const Literal& b);

 private:
  ElementType element_ = ElementType::f32;
  std::vector<int64_t> shape_;
  std::span<const std::byte> bytes_;
  std::shared_ptr<const void> owner_;
  std::shared_ptr<uint64_t> hash_;  // 0 = not yet known
};

}  // namespace backcast
