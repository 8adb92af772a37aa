// Types: construction, text form and small helpers on shapes.
#include "ir/graph/type.h"

#include "ir/graph/error.h"

namespace backcast {

Dim TensorType::element_count() const {
  Dim count = 1;
  for (const Dim& d : shape) count = count * d;
  return count;
}

bool TensorType::is_static() const { return backcast::is_static(shape); }

Type Type::tuple(std::vector<Type> elements) {
  Type type;
  type.elements_ = std::move(elements);
  return type;
}

const TensorType& Type::tensor() const {
  BC_CHECK(is_tensor_, "{} is not a tensor type", to_string());
  return tensor_;
}

const std::vector<Type>& Type::elements() const {
  BC_CHECK(!is_tensor_, "{} is not a tuple type", to_string());
  return elements_;
}

std::string Type::to_string() const {
  if (is_tensor_) return backcast::to_string(tensor_);
  std::string text = "(";
  for (size_t i = 0; i < elements_.size(); ++i) {
    if (i > 0) text += ", ";
    text += elements_[i].to_string();
  }
  return text + ")";
}

bool operator==(const Type& a, const Type& b) {
  if (a.is_tensor_ != b.is_tensor_) return false;
  return a.is_tensor_ ? a.tensor_ == b.tensor_ : a.elements_ == b.elements_;
}

std::string to_string(const TensorType& type) {
  return std::string(name_of(type.element)) + to_string(type.shape);
}

std::string to_string(const Shape& shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) {
    if (i > 0) text += ",";
    text += shape[i].to_string();
  }
  return text + "]";
}

std::vector<TensorType> flatten(const Type& type) {
  if (type.is_tensor()) return {type.tensor()};
  std::vector<TensorType> flat;
  for (const Type& element : type.elements()) {
    std::vector<TensorType> inner = flatten(element);
    flat.insert(flat.end(), inner.begin(), inner.end());
  }
  return flat;
}

std::vector<int64_t> row_major_strides(const std::vector<int64_t>& shape) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;) {
    // An extent of zero leaves no element to address; strides stay positive.
    const int64_t extent = shape[i] > 0 ? shape[i] : 1;
    if (__builtin_mul_overflow(strides[i], extent, &strides[i - 1])) {
      throw CompileError("a tensor has more than 2^63 elements");
    }
  }
  return strides;
}

std::vector<int64_t> static_shape(const Shape& shape) {
  std::vector<int64_t> extents;
  extents.reserve(shape.size());
  for (const Dim& d : shape) {
    BC_CHECK(d.is_constant(), "shape {} is not static", to_string(shape));
    extents.push_back(d.constant());
  }
  return extents;
}

}  // namespace backcast
