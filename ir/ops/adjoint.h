// Adjoints as values: what gradient rules and the differentiation share.
#pragma once

#include "ir/graph/builder.h"
#include "ir/graph/gradient.h"

namespace backcast {

/// Zeros of a tensor type.
ValueId emit_zeros(Builder& builder, const TensorType& type);
/// The value of an adjoint of type `type`, zeros where it is absent (also in the place of
/// integers).
ValueId materialize(Builder& builder, const Adjoint& adjoint, const Type& type);
/// Every part that both have is added up.
Adjoint add(Builder& builder, const Adjoint& a, const Adjoint& b);
/// The adjoint that a value stands for: a tuple is taken apart, parts that are no floating-point
/// tensors are absent.
Adjoint adjoint_of_value(Builder& builder, ValueId value);

/// The floating-point tensors of an adjoint of type `type`, in order, zeros where it is absent.
std::vector<ValueId> cotangent_leaves(Builder& builder, const Adjoint& adjoint, const Type& type);
/// The inverse: takes leaves[next++] for every floating-point tensor of `type`.
Adjoint adjoint_of_leaves(const Type& type, const std::vector<ValueId>& leaves, size_t& next);

}  // namespace backcast
