// Writing gradient rules (and losses, optimizers) as formulas: a Val is a value of a builder, and
// `x * 2.0 + exp(y)` emits the nodes. Numbers take the other side's type and shape.
#pragma once

#include <optional>
#include <vector>

#include "ir/graph/builder.h"
#include "ir/graph/gradient.h"
#include "ir/ops/ops.h"

namespace backcast {

class Val {
 public:
  Val(Builder& builder, ValueId id) : builder_(&builder), id_(id) {}

  ValueId id() const { return id_; }
  operator ValueId() const { return id_; }  // NOLINT: a Val is a value with its builder
  operator Adjoint() const { return id_; }  // NOLINT
  Builder& builder() const { return *builder_; }
  // By value: emitting moves the nodes that hold the types.
  TensorType type() const { return builder_->tensor_type(id_); }
  Shape shape() const { return builder_->tensor_type(id_).shape; }
  ElementType element() const { return builder_->tensor_type(id_).element; }
  int64_t rank() const { return builder_->tensor_type(id_).rank(); }

  /// A number in this value's type and shape.
  Val like(double number) const;
  Val emit(const OpDef& op, std::vector<ValueId> more = {}, Attrs attrs = {}) const;

 private:
  Builder* builder_;
  ValueId id_;
};

Val operator+(const Val& a, const Val& b);
Val operator-(const Val& a, const Val& b);
Val operator*(const Val& a, const Val& b);
Val operator/(const Val& a, const Val& b);
Val operator-(const Val& a);
inline Val operator+(const Val& a, double b) { return a + a.like(b); }
inline Val operator+(double a, const Val& b) { return b.like(a) + b; }
inline Val operator-(const Val& a, double b) { return a - a.like(b); }
inline Val operator-(double a, const Val& b) { return b.like(a) - b; }
inline Val operator*(const Val& a, double b) { return a * a.like(b); }
inline Val operator*(double a, const Val& b) { return b.like(a) * b; }
inline Val operator/(const Val& a, double b) { return a / a.like(b); }
inline Val operator/(double a, const Val& b) { return b.like(a) / b; }

/// Elementwise functions of one operand: the operator of the same name.
Val abs(const Val& x);
Val sign(const Val& x);
Val sqrt(const Val& x);
Val exp(const Val& x);
Val log(const Val& x);
Val sin(const Val& x);
Val cos(const Val& x);
Val sinh(const Val& x);
Val cosh(const Val& x);
Val tanh(const Val& x);
Val sigmoid(const Val& x);
Val relu(const Val& x);
Val pow(const Val& x, const Val& y);
Val min(const Val& a, const Val& b);
Val max(const Val& a, const Val& b);

Val compare(const Val& a, Comparison direction, const Val& b);  // bool
Val compare(const Val& a, Comparison direction, double b);
Val select(const Val& condition, const Val& yes, const Val& no);
Val cast(const Val& x, ElementType to);

Val reshape(const Val& x, const Shape& shape);
Val transpose(const Val& x, Ints permutation);
/// x's dimension i becomes dimension dims[i] of `shape`.
Val broadcast(const Val& x, const Shape& shape, Ints dims = {});
/// x, which lacks `axes`, repeated along them in `shape`: the twin of sum().
Val broadcast_along(const Val& x, const Shape& shape, const Ints& axes);
Val sum(const Val& x, Ints axes);
Val sum(const Val& x);  // over all axes
Val reduce_max(const Val& x, Ints axes);
Val slice(const Val& x, int64_t axis, const Dim& begin, const Dim& end);
/// Zeros of x's type.
Val zeros_like(const Val& x);

}  // namespace backcast
