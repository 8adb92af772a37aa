// Types of values: a tensor (element type and shape) or a tuple of types, nested at will.
#pragma once

#include <string>
#include <vector>

#include "ir/graph/dim.h"
#include "ir/graph/element_type.h"

namespace backcast {

using Shape = Dims;

struct TensorType {
  ElementType element = ElementType::f32;
  Shape shape;

  int64_t rank() const { return static_cast<int64_t>(shape.size()); }
  Dim element_count() const;  // product of the shape, 1 for a scalar
  bool is_static() const;
  friend bool operator==(const TensorType& a, const TensorType& b) {
    return a.element == b.element && a.shape == b.shape;
  }
};

class Type {
 public:
  Type() = default;                                                          // the empty tuple
  Type(TensorType tensor) : is_tensor_(true), tensor_(std::move(tensor)) {}  // NOLINT
  static Type tuple(std::vector<Type> elements);

  bool is_tensor() const { return is_tensor_; }
  bool is_tuple() const { return !is_tensor_; }
  /// InternalError when the type is not a tensor (a tuple).
  const TensorType& tensor() const;
  const std::vector<Type>& elements() const;

  /// `f32[N,10]`, `(f32[2], i64[])`
  std::string to_string() const;
  friend bool operator==(const Type& a, const Type& b);

 private:
  bool is_tensor_ = false;
  TensorType tensor_;
  std::vector<Type> elements_;
};

std::string to_string(const TensorType& type);
std::string to_string(const Shape& shape);  // "[2,N]"

/// The tensor types of a nested tuple, in order.
std::vector<TensorType> flatten(const Type& type);

/// Row-major strides in elements.
std::vector<int64_t> row_major_strides(const std::vector<int64_t>& shape);
/// All dimensions as integers; InternalError unless the shape is static.
std::vector<int64_t> static_shape(const Shape& shape);

}  // namespace backcast
