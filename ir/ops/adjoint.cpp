#include "ir/ops/adjoint.h"

#include "ir/ops/ops.h"

namespace backcast {

ValueId emit_zeros(Builder& builder, const TensorType& type) {
  const Shape shape = type.shape;  // a copy: emitting moves the nodes that hold the types
  const ValueId zero = builder.scalar(type.element, 0);
  if (shape.empty()) return zero;
  return builder.emit(ops::broadcast, {zero}, BroadcastAttrs{shape, {}});
}

ValueId materialize(Builder& builder, const Adjoint& adjoint, const Type& type) {
  if (adjoint.value) return *adjoint.value;
  if (type.is_tensor()) {
    return emit_zeros(builder, type.tensor());
  }
  std::vector<ValueId> parts;
  for (size_t i = 0; i < type.elements().size(); ++i) {
    const Adjoint part = adjoint.elements.empty() ? Adjoint() : adjoint.elements[i];
    parts.push_back(materialize(builder, part, type.elements()[i]));
  }
  return builder.emit(ops::tuple, parts);
}

Adjoint add(Builder& builder, const Adjoint& a, const Adjoint& b) {
  if (a.is_zero()) return b;
  if (b.is_zero()) return a;
  if (a.value) return builder.emit(ops::add, {*a.value, *b.value});
  std::vector<Adjoint> elements;
  for (size_t i = 0; i < a.elements.size(); ++i) {
    elements.push_back(add(builder, a.elements[i], b.elements[i]));
  }
  return Adjoint::tuple(std::move(elements));
}

Adjoint adjoint_of_value(Builder& builder, ValueId value) {
  const Type type = builder.type(value);
  if (type.is_tensor()) {
    return is_float(type.tensor().element) ? Adjoint(value) : Adjoint();
  }
  std::vector<Adjoint> elements;
  for (size_t i = 0; i < type.elements().size(); ++i) {
    const ValueId part = builder.emit(ops::get, {value}, GetAttrs{static_cast<int64_t>(i)});
    elements.push_back(adjoint_of_value(builder, part));
  }
  return Adjoint::tuple(std::move(elements));
}

std::vector<ValueId> cotangent_leaves(Builder& builder, const Adjoint& adjoint, const Type& type) {
  if (type.is_tensor()) {
    if (!is_float(type.tensor().element)) return {};
    return {materialize(builder, adjoint, type)};
  }
  std::vector<ValueId> leaves;
  for (size_t i = 0; i < type.elements().size(); ++i) {
    const Adjoint part = adjoint.elements.empty() ? Adjoint() : adjoint.elements[i];
    for (ValueId leaf : cotangent_leaves(builder, part, type.elements()[i])) leaves.push_back(leaf);
  }
  return leaves;
}

Adjoint adjoint_of_leaves(const Type& type, const std::vector<ValueId>& leaves, size_t& next) {
  if (type.is_tensor()) {
    return is_float(type.tensor().element) ? Adjoint(leaves.at(next++)) : Adjoint();
  }
  std::vector<Adjoint> elements;
  for (const Type& element : type.elements()) {
    elements.push_back(adjoint_of_leaves(element, leaves, next));
  }
  return Adjoint::tuple(std::move(elements));
}

}  // namespace backcast
