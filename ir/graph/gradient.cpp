// Adjoints as trees, and what gradient rules ask of their context.
#include "ir/graph/gradient.h"

#include "ir/graph/builder.h"
#include "ir/graph/error.h"

namespace backcast {

Adjoint Adjoint::tuple(std::vector<Adjoint> elements) {
  Adjoint result;
  result.elements = std::move(elements);
  return result;
}

bool Adjoint::is_zero() const {
  if (value) return false;
  for (const Adjoint& element : elements) {
    if (!element.is_zero()) return false;
  }
  return true;
}

ValueId GradientContext::operand(size_t i) const { return node.operands.at(i); }

const TensorType& GradientContext::type(size_t i) const {
  return builder.tensor_type(node.operands.at(i));
}

ValueId GradientContext::seed() const {
  BC_CHECK(cotangent.value.has_value(), "{} is differentiated without a cotangent", node.op->name);
  return *cotangent.value;
}

}  // namespace backcast
