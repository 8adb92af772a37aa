// Emits core operators the way ONNX thinks: with numpy broadcasting, scalars, keepdims and negative
// indices. Core operators themselves want equal shapes and element types.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "ir/graph/builder.h"
#include "ir/ops/ops.h"

namespace backcast {

/// The extent of two broadcast together; CompileError when they cannot be.
Dim broadcast_extent(const Dim& a, const Dim& b);
/// numpy's rule: shapes are aligned at their last dimension.
Shape broadcast_shapes(const Shape& a, const Shape& b);
/// Product of the extents from `begin` up to `end`; 1 when there are none.
Dim product(const Shape& shape, int64_t begin, int64_t end);
/// 0, 1, …, count - 1.
Ints counting(int64_t count, int64_t first = 0);

/// All methods throw CompileError when operands do not fit.
class Emitter {
 public:
  explicit Emitter(Builder& builder) : builder_(builder) {}

  Builder& builder() const { return builder_; }
  // By value: emitting moves the nodes that hold the types.
  TensorType type(ValueId x) const;
  Shape shape(ValueId x) const { return type(x).shape; }
  Dim extent(ValueId x, int64_t axis) const;
  int64_t rank(ValueId x) const { return type(x).rank(); }
  ElementType element(ValueId x) const { return type(x).element; }

  ValueId emit(const OpDef& op, std::vector<ValueId> operands, Attrs attrs = {});

  // Constants.
  ValueId constant(const Literal& value) { return builder_.constant(value); }
  ValueId scalar(ElementType element, double value) { return builder_.scalar(element, value); }
  ValueId integer(int64_t value);                        // i64, rank 0
  ValueId filled(const TensorType& type, double value);  // a scalar, broadcast
  ValueId like(ValueId x, double value);                 // of x's type
  ValueId iota(ElementType element, Shape shape, int64_t axis);
  /// i32, for conditions: beside numbers of 64 bits, lanes of floats stay empty.
  ValueId positions(Shape shape, int64_t axis) {
    return iota(ElementType::i32, std::move(shape), axis);
  }
  ValueId dimension(const Dim& value);       // i64, rank 0
  ValueId index_vector(const Dims& values);  // i64[n]
  ValueId lowest(const TensorType& type);    // -inf or the lowest integer
  ValueId highest(const TensorType& type);

  // Elementwise, with broadcasting. Element types have to agree.
  ValueId binary(const OpDef& op, ValueId a, ValueId b);
  ValueId add(ValueId a, ValueId b) { return binary(ops::add, a, b); }
  ValueId sub(ValueId a, ValueId b) { return binary(ops::sub, a, b); }
  ValueId mul(ValueId a, ValueId b) { return binary(ops::mul, a, b); }
  ValueId div(ValueId a, ValueId b) { return binary(ops::div, a, b); }
  ValueId min(ValueId a, ValueId b) { return binary(ops::min, a, b); }
  ValueId max(ValueId a, ValueId b) { return binary(ops::max, a, b); }
  ValueId add(ValueId a, double b) { return add(a, like(a, b)); }
  ValueId sub(ValueId a, double b) { return sub(a, like(a, b)); }
  ValueId mul(ValueId a, double b) { return mul(a, like(a, b)); }
  ValueId div(ValueId a, double b) { return div(a, like(a, b)); }
  ValueId unary(const OpDef& op, ValueId x) { return emit(op, {x}); }
  ValueId compare(Comparison direction, ValueId a, ValueId b);
  ValueId compare(Comparison direction, ValueId a, double b);
  ValueId select(ValueId condition, ValueId a, ValueId b);
  ValueId clamp(ValueId x, double low, double high);
  ValueId cast(ValueId x, ElementType to);  // nothing when x has the type already

  // Shape.
  ValueId reshape(ValueId x, Shape shape);
  ValueId transpose(ValueId x, Ints permutation);
  ValueId broadcast_to(ValueId x, const Shape& shape);
  ValueId broadcast_in(ValueId x, Shape shape, Ints dims);
  /// Every element along an axis so many times, side by side.
  ValueId repeat(ValueId x, int64_t axis, const Dim& times);
  ValueId unsqueeze(ValueId x, int64_t axis);
  ValueId slice_axis(ValueId x, int64_t axis, const Dim& start, const Dim& limit,
                     int64_t stride = 1);
  ValueId concat(const std::vector<ValueId>& parts, int64_t axis);
  ValueId reverse(ValueId x, Ints axes);
  ValueId pad(ValueId x, ValueId value, Dims low, Dims high);
  ValueId get(ValueId tuple, int64_t index);
  ValueId tuple(const std::vector<ValueId>& elements);
  /// What a tuple is made of, or else taken from it.
  std::vector<ValueId> elements(ValueId tuple);

  // Reductions.
  ValueId reduce(Reduction kind, ValueId x, const Ints& axes, bool keepdims = false);
  ValueId mean(ValueId x, const Ints& axes, bool keepdims = false);
  /// The number of elements along some axes, as a value of x's element type, rank 0.
  ValueId count(ValueId x, const Ints& axes);
  ValueId arg_reduce(Reduction kind, ValueId x, int64_t axis, bool last, bool keepdims);
  ValueId cumulative(Reduction kind, ValueId x, int64_t axis, bool exclusive, bool reverse);
  /// Gives removed axes back with extent 1.
  ValueId keep_axes(ValueId reduced, const Shape& before, const Ints& axes);

  // Indexing; indices are integers and not negative.
  /// numpy.take: x's `axis` is replaced by the dimensions of `indices`.
  ValueId take(ValueId x, ValueId indices, int64_t axis);
  /// result[i] = x[coordinates[i]]: `coordinates` holds whole index vectors along its last
  /// dimension.
  ValueId at(ValueId x, ValueId coordinates);
  /// Adds the extent of x's axis to negative indices.
  ValueId wrap_negative(ValueId indices, const Dim& extent);

  ValueId dot(ValueId a, ValueId b, DotGeneralAttrs attrs) {
    return emit(ops::dot_general, {a, b}, std::move(attrs));
  }

 private:
  bool are_places(ValueId x) const;
  /// CompileError unless 0 <= axis < rank of x.
  void check_axis(ValueId x, int64_t axis) const;

  Builder& builder_;
};

}  // namespace backcast
