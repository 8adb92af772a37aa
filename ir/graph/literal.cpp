// Constant data: conversion from and to numbers, content hash, comparison.
#include "ir/graph/literal.h"

#include <atomic>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "ir/graph/error.h"

namespace backcast {
namespace {

static_assert(std::endian::native == std::endian::little, "literals are stored little-endian");

int64_t checked_count(const std::vector<int64_t>& shape) {
  int64_t count = 1;
  bool too_many = false;
  for (const int64_t extent : shape) {
    BC_CHECK(extent >= 0, "a literal has a negative extent, {}", extent);
    if (extent == 0) return 0;
    too_many |= __builtin_mul_overflow(count, extent, &count);
  }
  if (too_many) throw CompileError("a constant has more than 2^63 elements");
  return count;
}

void check_size(ElementType element, const std::vector<int64_t>& shape, size_t bytes) {
  const int64_t count = checked_count(shape);
  const int64_t size = byte_size(element);
  BC_CHECK(bytes % static_cast<size_t>(size) == 0 &&
               bytes / static_cast<size_t>(size) == static_cast<size_t>(count),
           "a literal of {} elements of {} has {} bytes", count, name_of(element), bytes);
}

/// Every byte of a bool is 0 or 1.
void normalise_bools(std::vector<std::byte>& bytes) {
  for (std::byte& b : bytes) b = std::byte{b != std::byte{0}};
}

template <class T>
T load(std::span<const std::byte> bytes, int64_t i) {
  T value;
  std::memcpy(&value, bytes.data() + static_cast<size_t>(i) * sizeof(T), sizeof(T));
  return value;
}

/// Truncates toward zero and saturates; NaN gives 0.
template <class T>
T integer_from(double value) {
  if (std::isnan(value)) return 0;
  const double truncated = std::trunc(value);
  // 2^digits is exact, max() need not be.
  if (truncated >= std::ldexp(1.0, std::numeric_limits<T>::digits)) {
    return std::numeric_limits<T>::max();
  }
  if (truncated < static_cast<double>(std::numeric_limits<T>::min())) {
    return std::numeric_limits<T>::min();
  }
  return static_cast<T>(truncated);
}

template <class T>
void store(std::byte* to, T value) {
  std::memcpy(to, &value, sizeof(T));
}

void store_double(ElementType element, std::byte* to, double value) {
  switch (element) {
    case ElementType::boolean:
      return store(to, static_cast<uint8_t>(value != 0));
    case ElementType::i8:
      return store(to, integer_from<int8_t>(value));
    case ElementType::i16:
      return store(to, integer_from<int16_t>(value));
    case ElementType::i32:
      return store(to, integer_from<int32_t>(value));
    case ElementType::i64:
      return store(to, integer_from<int64_t>(value));
    case ElementType::u8:
      return store(to, integer_from<uint8_t>(value));
    case ElementType::u16:
      return store(to, integer_from<uint16_t>(value));
    case ElementType::u32:
      return store(to, integer_from<uint32_t>(value));
    case ElementType::u64:
      return store(to, integer_from<uint64_t>(value));
    case ElementType::f16:
      return store(to, f16_from_f64(value));
    case ElementType::bf16:
      return store(to, bf16_from_f64(value));
    case ElementType::f32:
      return store(to, static_cast<float>(value));
    case ElementType::f64:
      return store(to, value);
  }
}

uint64_t mix(uint64_t hash, uint64_t word) {
  hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
  return hash ^ hash >> 29;  // a product alone never moves information downward
}

}  // namespace

Literal::Literal(ElementType element, std::vector<int64_t> shape, std::vector<std::byte> bytes)
    : element_(element), shape_(std::move(shape)), hash_(std::make_shared<uint64_t>(0)) {
  check_size(element_, shape_, bytes.size());
  if (element == ElementType::boolean) normalise_bools(bytes);
  const std::shared_ptr<const std::vector<std::byte>> held =
      std::make_shared<const std::vector<std::byte>>(std::move(bytes));
  bytes_ = *held;
  owner_ = held;
}

Literal::Literal(ElementType element, std::vector<int64_t> shape, std::span<const std::byte> bytes,
                 std::shared_ptr<const void> owner)
    : element_(element),
      shape_(std::move(shape)),
      bytes_(bytes),
      owner_(std::move(owner)),
      hash_(std::make_shared<uint64_t>(0)) {
  check_size(element_, shape_, bytes.size());
  const size_t alignment = static_cast<size_t>(byte_size(element));
  const bool aligned = reinterpret_cast<uintptr_t>(bytes.data()) % alignment == 0;
  // data<T>() needs aligned elements and true bools; a copy provides both.
  if (!aligned || element == ElementType::boolean) {
    *this = Literal(element_, shape_, std::vector<std::byte>(bytes.begin(), bytes.end()));
  }
}

Literal Literal::scalar(ElementType element, double value) {
  return from_doubles(element, {}, {value});
}

Literal Literal::from_doubles(ElementType element, std::vector<int64_t> shape,
                              const std::vector<double>& values) {
  const size_t size = static_cast<size_t>(byte_size(element));
  std::vector<std::byte> bytes(values.size() * size);
  for (size_t i = 0; i < values.size(); ++i) {
    store_double(element, bytes.data() + i * size, values[i]);
  }
  return Literal(element, std::move(shape), std::move(bytes));
}

Literal Literal::from_ints(std::vector<int64_t> shape, const std::vector<int64_t>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(int64_t));
  if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return Literal(ElementType::i64, std::move(shape), std::move(bytes));
}

int64_t Literal::element_count() const {
  return static_cast<int64_t>(bytes_.size()) / byte_size(element_);
}

TensorType Literal::type() const { return {element_, Shape(shape_.begin(), shape_.end())}; }

double Literal::as_double(int64_t i) const {
  BC_CHECK(i >= 0 && i < element_count(), "element {} of a literal of {}", i, element_count());
  switch (element_) {
    case ElementType::f16:
      return f32_from_f16(load<uint16_t>(bytes_, i));
    case ElementType::bf16:
      return f32_from_bf16(load<uint16_t>(bytes_, i));
    case ElementType::f32:
      return load<float>(bytes_, i);
    case ElementType::f64:
      return load<double>(bytes_, i);
    case ElementType::u64:
      return static_cast<double>(load<uint64_t>(bytes_, i));
    default:
      return static_cast<double>(as_int(i));
  }
}

int64_t Literal::as_int(int64_t i) const {
  BC_CHECK(i >= 0 && i < element_count(), "element {} of a literal of {}", i, element_count());
  switch (element_) {
    case ElementType::boolean:
      return load<uint8_t>(bytes_, i) != 0;
    case ElementType::i8:
      return load<int8_t>(bytes_, i);
    case ElementType::i16:
      return load<int16_t>(bytes_, i);
    case ElementType::i32:
      return load<int32_t>(bytes_, i);
    case ElementType::i64:
      return load<int64_t>(bytes_, i);
    case ElementType::u8:
      return load<uint8_t>(bytes_, i);
    case ElementType::u16:
      return load<uint16_t>(bytes_, i);
    case ElementType::u32:
      return load<uint32_t>(bytes_, i);
    case ElementType::u64:
      return static_cast<int64_t>(load<uint64_t>(bytes_, i));
    default:
      return integer_from<int64_t>(as_double(i));
  }
}

std::vector<int64_t> Literal::as_ints() const {
  std::vector<int64_t> values;
  const int64_t count = element_count();
  values.reserve(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) values.push_back(as_int(i));
  return values;
}

std::vector<double> Literal::as_doubles() const {
  std::vector<double> values;
  const int64_t count = element_count();
  values.reserve(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) values.push_back(as_double(i));
  return values;
}

Literal Literal::converted_to(ElementType element) const {
  return from_doubles(element, shape_, as_doubles());
}

bool Literal::is_splat(double value) const {
  const int64_t count = element_count();
  for (int64_t i = 0; i < count; ++i) {
    if (as_double(i) != value) return false;
  }
  return true;
}

uint64_t Literal::hash() const {
  if (hash_) {
    const uint64_t known = std::atomic_ref<uint64_t>(*hash_).load(std::memory_order_relaxed);
    if (known != 0) return known;
  }
  uint64_t hash = mix(0xcbf29ce484222325u, static_cast<uint64_t>(element_));
  for (const int64_t extent : shape_) hash = mix(hash, static_cast<uint64_t>(extent));
  hash = mix(hash, shape_.size());
  const size_t words = bytes_.size() / sizeof(uint64_t);
  for (size_t i = 0; i < words; ++i) {
    hash = mix(hash, load<uint64_t>(bytes_, static_cast<int64_t>(i)));
  }
  uint64_t tail = 0;
  const size_t left = bytes_.size() - words * sizeof(uint64_t);
  if (left > 0) std::memcpy(&tail, bytes_.data() + words * sizeof(uint64_t), left);
  hash = mix(mix(hash, tail), bytes_.size());
  if (hash == 0) hash = 1;
  if (hash_) std::atomic_ref<uint64_t>(*hash_).store(hash, std::memory_order_relaxed);
  return hash;
}

bool operator==(const Literal& a, const Literal& b) {
  if (a.element_ != b.element_ || a.shape_ != b.shape_) return false;
  if (a.bytes_.size() != b.bytes_.size()) return false;
  if (a.bytes_.data() == b.bytes_.data() || a.bytes_.empty()) return true;
  return std::memcmp(a.bytes_.data(), b.bytes_.data(), a.bytes_.size()) == 0;
}

}  // namespace backcast
