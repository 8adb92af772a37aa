// Reading and writing tensors in evaluation rules.
#pragma once

#include <cstring>
#include <type_traits>
#include <vector>

#include "ir/graph/error.h"
#include "ir/graph/module.h"

namespace backcast::ops {

/// Element i in the type that computes (float for f16 and bf16).
template <class T>
T element(const Literal& tensor, int64_t i) {
  if (tensor.element() == ElementType::f16) {
    return static_cast<T>(f32_from_f16(tensor.data<uint16_t>()[i]));
  }
  if (tensor.element() == ElementType::bf16) {
    return static_cast<T>(f32_from_bf16(tensor.data<uint16_t>()[i]));
  }
  if constexpr (std::is_same_v<T, bool>) {
    return tensor.data<uint8_t>()[i] != 0;
  } else {
    return tensor.data<T>()[i];
  }
}

/// A tensor under construction; elements start as zero.
class TensorWriter {
 public:
  TensorWriter(ElementType type, std::vector<int64_t> shape)
      : type_(type), shape_(std::move(shape)) {
    count_ = 1;
    for (int64_t extent : shape_) count_ *= extent;
    bytes_.resize(static_cast<size_t>(count_ * byte_size(type)));
  }

  int64_t count() const { return count_; }
  const std::vector<int64_t>& shape() const { return shape_; }

  /// Stores a value of the computing type (double is accepted for every float type: one rounding).
  template <class V>
  void set(int64_t i, V value) {
    switch (type_) {
      case ElementType::f16:
        return put(i, f16_from_f64(static_cast<double>(value)));
      case ElementType::bf16:
        return put(i, bf16_from_f32(static_cast<float>(value)));
      case ElementType::f32:
        return put(i, static_cast<float>(value));
      case ElementType::f64:
        return put(i, static_cast<double>(value));
      case ElementType::boolean:
        return put(i, static_cast<uint8_t>(value != V{}));
      case ElementType::i8:
        return put(i, static_cast<int8_t>(value));
      case ElementType::i16:
        return put(i, static_cast<int16_t>(value));
      case ElementType::i32:
        return put(i, static_cast<int32_t>(value));
      case ElementType::i64:
        return put(i, static_cast<int64_t>(value));
      case ElementType::u8:
        return put(i, static_cast<uint8_t>(value));
      case ElementType::u16:
        return put(i, static_cast<uint16_t>(value));
      case ElementType::u32:
        return put(i, static_cast<uint32_t>(value));
      case ElementType::u64:
        return put(i, static_cast<uint64_t>(value));
    }
  }

  /// Copies element `from` of a tensor of the same element type.
  void copy(int64_t to, const Literal& source, int64_t from) {
    size_t size = static_cast<size_t>(byte_size(type_));
    std::memcpy(bytes_.data() + static_cast<size_t>(to) * size,
                source.bytes().data() + static_cast<size_t>(from) * size, size);
  }

  Literal finish() { return Literal(type_, shape_, std::move(bytes_)); }

 private:
  template <class T>
  void put(int64_t i, T value) {
    std::memcpy(bytes_.data() + static_cast<size_t>(i) * sizeof(T), &value, sizeof(T));
  }

  ElementType type_;
  std::vector<int64_t> shape_;
  int64_t count_ = 0;
  std::vector<std::byte> bytes_;
};

inline TensorWriter result_writer(const EvalContext& c) {
  return TensorWriter(c.node.type.tensor().element, c.result_shape());
}

/// Steps through the positions of a shape in row-major order.
class Odometer {
 public:
  explicit Odometer(std::vector<int64_t> shape) : shape_(std::move(shape)), at_(shape_.size(), 0) {
    for (int64_t extent : shape_) done_ = done_ || extent == 0;
  }
  bool done() const { return done_; }
  const std::vector<int64_t>& at() const { return at_; }
  int64_t operator[](size_t d) const { return at_[d]; }
  void next() {
    for (size_t d = shape_.size(); d-- > 0;) {
      if (++at_[d] < shape_[d]) return;
      at_[d] = 0;
    }
    done_ = true;
  }
  int64_t flat(const std::vector<int64_t>& strides) const {
    int64_t index = 0;
    for (size_t d = 0; d < at_.size(); ++d) index += at_[d] * strides[d];
    return index;
  }

 private:
  std::vector<int64_t> shape_, at_;
  bool done_ = false;
};

// ---- inference helpers -------------------------------------------------------------------------

template <class... Args>
void require(bool condition, fmt::format_string<Args...> text, Args&&... args) {
  if (!condition) throw CompileError(fmt::format(text, std::forward<Args>(args)...));
}

inline void require_axis(int64_t axis, int64_t rank) {
  require(axis >= 0 && axis < rank, "axis {} is outside of 0..{}", axis, rank - 1);
}

/// Axes in range and each once.
inline void require_axes(const std::vector<int64_t>& axes, int64_t rank) {
  std::vector<char> seen(static_cast<size_t>(rank), 0);
  for (int64_t axis : axes) {
    require_axis(axis, rank);
    require(!seen[static_cast<size_t>(axis)]++, "axis {} is named twice", axis);
  }
}

inline void require_extent(const Dim& extent) {
  require(!extent.is_constant() || extent.constant() >= 0, "the result would have the extent {}",
          extent.to_string());
}

inline void require_length(size_t length, int64_t rank, const char* what) {
  require(static_cast<int64_t>(length) == rank, "{} has {} entries, the rank is {}", what, length,
          rank);
}

}  // namespace backcast::ops
