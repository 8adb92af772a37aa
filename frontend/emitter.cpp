// Broadcasting and the other conveniences that import rules share.
#include "frontend/emitter.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ir/graph/error.h"

namespace backcast {

Dim broadcast_extent(const Dim& a, const Dim& b) {
  if (a == b || b == Dim(1)) return a;
  if (a == Dim(1)) return b;
  throw CompileError(
      fmt::format("extents {} and {} cannot be broadcast together", a.to_string(), b.to_string()));
}

Shape broadcast_shapes(const Shape& a, const Shape& b) {
  const Shape& longer = a.size() >= b.size() ? a : b;
  const Shape& shorter = a.size() >= b.size() ? b : a;
  Shape result = longer;
  const size_t offset = longer.size() - shorter.size();
  for (size_t i = 0; i < shorter.size(); ++i) {
    try {
      result[offset + i] = broadcast_extent(longer[offset + i], shorter[i]);
    } catch (const CompileError&) {
      throw CompileError(
          fmt::format("shapes {} and {} cannot be broadcast together", to_string(a), to_string(b)));
    }
  }
  return result;
}

Dim product(const Shape& shape, int64_t begin, int64_t end) {
  Dim result(1);
  for (int64_t i = begin; i < end; ++i) result = result * shape[static_cast<size_t>(i)];
  return result;
}

Ints counting(int64_t count, int64_t first) {
  Ints result;
  for (int64_t i = 0; i < count; ++i) result.push_back(first + i);
  return result;
}

TensorType Emitter::type(ValueId x) const {
  if (builder_.type(x).is_tuple()) {
    throw CompileError(builder_.loc(), "an operand is no tensor");
  }
  return builder_.tensor_type(x);
}

Dim Emitter::extent(ValueId x, int64_t axis) const {
  check_axis(x, axis);
  return shape(x)[static_cast<size_t>(axis)];
}

void Emitter::check_axis(ValueId x, int64_t axis) const {
  if (axis >= 0 && axis < rank(x)) return;
  throw CompileError(builder_.loc(), fmt::format("an operand of shape {} has no axis {}",
                                                 to_string(shape(x)), axis));
}

ValueId Emitter::emit(const OpDef& op, std::vector<ValueId> operands, Attrs attrs) {
  return builder_.emit(op, std::move(operands), std::move(attrs));
}

ValueId Emitter::integer(int64_t value) { return constant(Literal::from_ints({}, {value})); }

ValueId Emitter::filled(const TensorType& type, double value) {
  return broadcast_to(scalar(type.element, value), type.shape);
}

ValueId Emitter::like(ValueId x, double value) { return filled(TensorType(type(x)), value); }

ValueId Emitter::iota(ElementType element, Shape shape, int64_t axis) {
  return emit(ops::iota, {}, IotaAttrs{element, std::move(shape), axis});
}

ValueId Emitter::dimension(const Dim& value) {
  if (value.is_constant()) return integer(value.constant());
  return emit(ops::dimension, {}, DimensionAttrs{value});
}

ValueId Emitter::index_vector(const Dims& values) {
  if (is_static(values)) {
    std::vector<int64_t> ints;
    for (const Dim& d : values) ints.push_back(d.constant());
    return constant(Literal::from_ints({static_cast<int64_t>(ints.size())}, ints));
  }
  std::vector<ValueId> parts;
  for (const Dim& d : values) parts.push_back(reshape(dimension(d), {Dim(1)}));
  return concat(parts, 0);
}

ValueId Emitter::lowest(const TensorType& type) {
  if (!is_float(type.element)) {
    // The double nearest to the lowest integer is exact: a power of two or zero.
    const int64_t bits = byte_size(type.element) * 8;
    const bool below = is_signed(type.element) && type.element != ElementType::boolean;
    return filled(type, below ? -std::ldexp(1.0, static_cast<int>(bits - 1)) : 0.0);
  }
  return filled(type, -std::numeric_limits<double>::infinity());
}

ValueId Emitter::highest(const TensorType& type) {
  // Conversion to an integer saturates.
  return filled(type, std::numeric_limits<double>::infinity());
}

ValueId Emitter::binary(const OpDef& op, ValueId a, ValueId b) {
  const Shape result = broadcast_shapes(shape(a), shape(b));
  a = broadcast_to(a, result);
  return emit(op, {a, broadcast_to(b, result)});
}

ValueId Emitter::compare(Comparison direction, ValueId a, ValueId b) {
  const Shape result = broadcast_shapes(shape(a), shape(b));
  a = broadcast_to(a, result);
  return emit(ops::compare, {a, broadcast_to(b, result)}, CompareAttrs{direction});
}

ValueId Emitter::compare(Comparison direction, ValueId a, double b) {
  return compare(direction, a, like(a, b));
}

ValueId Emitter::select(ValueId condition, ValueId a, ValueId b) {
  const Shape result = broadcast_shapes(broadcast_shapes(shape(condition), shape(a)), shape(b));
  condition = broadcast_to(condition, result);
  a = broadcast_to(a, result);
  return emit(ops::select, {condition, a, broadcast_to(b, result)});
}

ValueId Emitter::clamp(ValueId x, double low, double high) {
  return emit(ops::clamp, {x, scalar(element(x), low), scalar(element(x), high)});
}

ValueId Emitter::cast(ValueId x, ElementType to) {
  if (element(x) == to) return x;
  return emit(ops::cast, {x}, CastAttrs{to});
}

ValueId Emitter::reshape(ValueId x, Shape shape) {
  if (this->shape(x) == shape) return x;
  return emit(ops::reshape, {x}, ReshapeAttrs{std::move(shape)});
}

ValueId Emitter::transpose(ValueId x, Ints permutation) {
  if (permutation == counting(rank(x))) return x;
  return emit(ops::transpose, {x}, TransposeAttrs{std::move(permutation)});
}

ValueId Emitter::broadcast_in(ValueId x, Shape shape, Ints dims) {
  if (this->shape(x) == shape) return x;
  return emit(ops::broadcast, {x}, BroadcastAttrs{std::move(shape), std::move(dims)});
}

ValueId Emitter::broadcast_to(ValueId x, const Shape& shape) {
  const int64_t extra = static_cast<int64_t>(shape.size()) - rank(x);
  if (extra < 0) {
    throw CompileError(builder_.loc(), fmt::format("shape {} cannot be broadcast to {}",
                                                   to_string(this->shape(x)), to_string(shape)));
  }
  return broadcast_in(x, shape, counting(rank(x), extra));
}

ValueId Emitter::repeat(ValueId x, int64_t axis, const Dim& times) {
  check_axis(x, axis);
  Shape spread = shape(x), joined = spread;
  spread.insert(spread.begin() + axis + 1, times);
  joined[static_cast<size_t>(axis)] = joined[static_cast<size_t>(axis)] * times;
  Ints dims = counting(rank(x) + 1);
  dims.erase(dims.begin() + axis + 1);
  return reshape(broadcast_in(x, spread, dims), joined);
}

ValueId Emitter::unsqueeze(ValueId x, int64_t axis) {
  Shape to = shape(x);
  if (axis != rank(x)) check_axis(x, axis);
  to.insert(to.begin() + axis, Dim(1));
  return reshape(x, to);
}

ValueId Emitter::slice_axis(ValueId x, int64_t axis, const Dim& start, const Dim& limit,
                            int64_t stride) {
  if (start == Dim(0) && limit == extent(x, axis) && stride == 1) return x;
  SliceAttrs attrs;
  attrs.limit = shape(x);
  attrs.start.assign(attrs.limit.size(), Dim(0));
  attrs.stride.assign(attrs.limit.size(), 1);
  attrs.start[static_cast<size_t>(axis)] = start;
  attrs.limit[static_cast<size_t>(axis)] = limit;
  attrs.stride[static_cast<size_t>(axis)] = stride;
  return emit(ops::slice, {x}, std::move(attrs));
}

ValueId Emitter::concat(const std::vector<ValueId>& parts, int64_t axis) {
  if (parts.size() == 1) return parts[0];
  return emit(ops::concat, parts, ConcatAttrs{axis});
}

ValueId Emitter::reverse(ValueId x, Ints axes) {
  if (axes.empty()) return x;
  return emit(ops::reverse, {x}, ReverseAttrs{std::move(axes)});
}

ValueId Emitter::pad(ValueId x, ValueId value, Dims low, Dims high) {
  const auto zero = [](const Dim& d) { return d == Dim(0); };
  if (std::all_of(low.begin(), low.end(), zero) && std::all_of(high.begin(), high.end(), zero)) {
    return x;
  }
  Ints interior(low.size(), 0);
  return emit(ops::pad, {x, value}, PadAttrs{std::move(low), std::move(high), interior});
}

ValueId Emitter::get(ValueId tuple, int64_t index) {
  return emit(ops::get, {tuple}, GetAttrs{index});
}

ValueId Emitter::tuple(const std::vector<ValueId>& elements) { return emit(ops::tuple, elements); }

std::vector<ValueId> Emitter::elements(ValueId tuple) {
  const Node& node = builder_.node(tuple);
  if (node.op == &ops::tuple) return node.operands;
  const size_t count = node.type.elements().size();
  std::vector<ValueId> result;
  for (size_t i = 0; i < count; ++i) result.push_back(get(tuple, static_cast<int64_t>(i)));
  return result;
}

ValueId Emitter::keep_axes(ValueId reduced, const Shape& before, const Ints& axes) {
  Shape kept = before;
  for (const int64_t axis : axes) kept[static_cast<size_t>(axis)] = Dim(1);
  return reshape(reduced, kept);
}

ValueId Emitter::reduce(Reduction kind, ValueId x, const Ints& axes, bool keepdims) {
  if (axes.empty()) return x;
  for (const int64_t axis : axes) check_axis(x, axis);
  const Shape before = shape(x);
  const ValueId reduced = emit(ops::reduce, {x}, ReduceAttrs{kind, axes});
  return keepdims ? keep_axes(reduced, before, axes) : reduced;
}

ValueId Emitter::count(ValueId x, const Ints& axes) {
  Dim total(1);
  for (const int64_t axis : axes) total = total * extent(x, axis);
  if (total.is_constant()) return scalar(element(x), static_cast<double>(total.constant()));
  return cast(dimension(total), element(x));
}

ValueId Emitter::mean(ValueId x, const Ints& axes, bool keepdims) {
  const ValueId total = count(x, axes);
  return div(reduce(Reduction::sum, x, axes, keepdims), total);
}

ValueId Emitter::arg_reduce(Reduction kind, ValueId x, int64_t axis, bool last, bool keepdims) {
  check_axis(x, axis);
  const Shape before = shape(x);
  const ValueId found = emit(ops::arg_reduce, {x}, ArgReduceAttrs{kind, axis, last});
  return keepdims ? keep_axes(found, before, {axis}) : found;
}

ValueId Emitter::cumulative(Reduction kind, ValueId x, int64_t axis, bool exclusive, bool reverse) {
  return emit(ops::cumulative, {x}, CumulativeAttrs{kind, axis, exclusive, reverse});
}

ValueId Emitter::take(ValueId x, ValueId indices, int64_t axis) {
  check_axis(x, axis);
  GatherAttrs attrs;
  const int64_t index_rank = rank(indices);
  if (extent(x, axis) == Dim(0)) {  // there is nothing to take, and nothing is taken
    Shape result = shape(x);
    const Shape places = shape(indices);
    result.erase(result.begin() + axis);
    result.insert(result.begin() + axis, places.begin(), places.end());
    return filled({element(x), result}, 0);
  }
  attrs.offset_dims = counting(axis);
  for (int64_t i = axis + 1; i < rank(x); ++i) attrs.offset_dims.push_back(i - 1 + index_rank);
  attrs.collapsed_slice_dims = {axis};
  attrs.start_index_map = {axis};
  attrs.index_vector_dim = index_rank;
  attrs.slice_sizes = shape(x);
  attrs.slice_sizes[static_cast<size_t>(axis)] = Dim(1);
  return emit(ops::gather, {x, indices}, std::move(attrs));
}

ValueId Emitter::at(ValueId x, ValueId coordinates) {
  check_axis(coordinates, rank(coordinates) - 1);
  GatherAttrs attrs;
  attrs.collapsed_slice_dims = counting(rank(x));
  attrs.start_index_map = counting(rank(x));
  attrs.index_vector_dim = rank(coordinates) - 1;
  attrs.slice_sizes.assign(static_cast<size_t>(rank(x)), Dim(1));
  return emit(ops::gather, {x, coordinates}, std::move(attrs));
}

/// Whether all elements are places that an operator found, which are never negative.
bool Emitter::are_places(ValueId x) const {
  const Node* node = &builder_.node(x);
  const auto moves = [](const Node& n) {
    if (n.op == &ops::cast) {
      const ElementType to = n.type.tensor().element;
      return to == ElementType::i32 || to == ElementType::i64;
    }
    return n.op == &ops::reshape || n.op == &ops::transpose || n.op == &ops::slice;
  };
  while (moves(*node)) node = &builder_.node(node->operands[0]);
  if (node->op != &ops::get) return node->op == &ops::arg_reduce;
  return node->attrs.as<GetAttrs>().index == 1 &&
         builder_.node(node->operands[0]).op == &ops::top_k;
}

ValueId Emitter::wrap_negative(ValueId indices, const Dim& extent) {
  if (!is_signed(element(indices)) || are_places(indices)) return indices;
  const ValueId size = cast(dimension(extent), element(indices));
  return select(compare(Comparison::lt, indices, 0.0), add(indices, size), indices);
}

}  // namespace backcast
