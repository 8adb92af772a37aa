// Rules about what is converted, scaled or spread and then moved: it is moved before that.
#include <algorithm>
#include <utility>
#include <vector>

#include "passes/graph/algebra.h"
#include "passes/graph/constant_value.h"

namespace backcast {
namespace {

using Result = std::optional<ValueId>;

/// A node that moves elements of its first operand, of another operand.
ValueId moved(Builder& b, const Node& node, ValueId x) {
  std::vector<ValueId> operands = node.operands;
  operands[0] = x;
  return b.emit(*node.op, operands, node.attrs);
}

/// What is converted to a wider type is moved before that: less is moved.
Result move_narrow(Builder& b, const Node& node) {
  const Node inner = b.node(node.operands[0]);
  if (inner.op != &ops::cast) return std::nullopt;
  const ElementType from = b.tensor_type(inner.operands[0]).element;
  if (byte_size(from) >= byte_size(inner.type.tensor().element)) return std::nullopt;
  return b.emit(ops::cast, {moved(b, node, inner.operands[0])}, inner.attrs);
}

/// Integers are scaled after they were moved: what is quantised behind that sees them.
Result move_integers(Builder& b, const Node& node) {
  const Node inner = b.node(node.operands[0]);
  if (inner.op != &ops::mul) return std::nullopt;
  const Node whole = b.node(inner.operands[0]);
  const std::optional<double> scale = splat_of(b, inner.operands[1]);
  if (!scale || whole.op != &ops::cast || !is_integer(b.tensor_type(whole.operands[0]).element)) {
    return std::nullopt;
  }
  const ValueId real = b.emit(ops::cast, {moved(b, node, whole.operands[0])}, whole.attrs);
  const TensorType& type = node.type.tensor();
  const ValueId by = b.scalar(type.element, *scale);
  return b.emit(ops::mul, {real, b.emit(ops::broadcast, {by}, BroadcastAttrs{type.shape, {}})});
}

/// What is repeated, reshape(broadcast(x)), is moved as it is by one node.
template <Result (*move)(Builder&, const Node&)>
Result move_repeated(Builder& b, const Node& node) {
  const Node spread = b.node(node.operands[0]);
  if (spread.op != &ops::broadcast || constant_of(b, spread.operands[0])) return std::nullopt;
  const Result moved = move(b, spread);
  return moved ? Result(b.emit(ops::reshape, {*moved}, node.attrs)) : std::nullopt;
}

/// Scaled integers that are constants, with a scale for each channel: the factors of the product.
std::optional<std::pair<ValueId, ValueId>> decoded_constant(const Builder& b, ValueId id) {
  const Node& product = b.node(id);
  if (product.op != &ops::mul || !is_made_of_constants(b, id)) return std::nullopt;
  const Node& whole = b.node(product.operands[0]);
  if (whole.op != &ops::cast || b.node(product.operands[1]).op != &ops::broadcast) {
    return std::nullopt;
  }
  return std::pair(product.operands[0], product.operands[1]);
}

/// What is cut out of them needs no room for the whole.
Result slice_of_decoded(Builder& b, const Node& node) {
  const auto factors = decoded_constant(b, node.operands[0]);
  if (!factors) return std::nullopt;
  return b.emit(ops::mul, {moved(b, node, factors->first), moved(b, node, factors->second)});
}

/// The axes of a shape that are not 1.
std::vector<int64_t> long_axes(const Shape& shape) {
  std::vector<int64_t> axes;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (!(shape[i] == Dim(1))) axes.push_back(static_cast<int64_t>(i));
  }
  return axes;
}

/// Axes of 1 come and go.
Result reshape_of_decoded(Builder& b, const Node& node) {
  const auto factors = decoded_constant(b, node.operands[0]);
  if (!factors) return std::nullopt;
  const Shape from = b.tensor_type(node.operands[0]).shape, to = node.type.tensor().shape;
  const std::vector<int64_t> before = long_axes(from), after = long_axes(to);
  const Node spread = b.node(factors->second);
  const Shape scales = b.tensor_type(spread.operands[0]).shape;
  bool fits = before.size() == after.size() && long_axes(scales).size() == scales.size();
  BroadcastAttrs attrs{to, {}};
  for (size_t i = 0; i < before.size() && fits; ++i) {
    fits = from[static_cast<size_t>(before[i])] == to[static_cast<size_t>(after[i])];
    const Ints& dims = spread.attrs.as<BroadcastAttrs>().dims;
    if (std::ranges::count(dims, before[i]) > 0) attrs.dims.push_back(after[i]);
  }
  if (!fits) return std::nullopt;
  const ValueId whole = moved(b, node, factors->first);
  return b.emit(ops::mul, {whole, b.emit(ops::broadcast, {spread.operands[0]}, attrs)});
}

/// The slice is of what is spread: of an extent of 1 all.
Result slice_of_broadcast(Builder& b, const Node& node) {
  const Node spread = b.node(node.operands[0]);
  if (spread.op != &ops::broadcast) return std::nullopt;
  const BroadcastAttrs& attrs = spread.attrs.as<BroadcastAttrs>();
  const SliceAttrs& all = node.attrs.as<SliceAttrs>();
  const Shape shape = b.tensor_type(spread.operands[0]).shape;
  SliceAttrs part{Dims(shape.size(), Dim(0)), shape, Ints(shape.size(), 1)};
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == Dim(1)) continue;
    const auto axis = static_cast<size_t>(attrs.dims[i]);
    part.start[i] = all.start[axis];
    part.limit[i] = all.limit[axis];
    part.stride[i] = all.stride[axis];
  }
  const ValueId cut =
      attrs.dims.empty() ? spread.operands[0] : b.emit(ops::slice, {spread.operands[0]}, part);
  return b.emit(ops::broadcast, {cut}, BroadcastAttrs{node.type.tensor().shape, attrs.dims});
}

const AlgebraicRule kRules[] = {
    {"reshape(wider(x)) = wider(reshape(x))", &ops::reshape, move_narrow},
    {"reshape(wide(wider(x))) = reshape(wider(wide(x)))", &ops::reshape,
     move_repeated<move_narrow>},
    {"transpose(wider(x)) = wider(transpose(x))", &ops::transpose, move_narrow},
    {"slice(wider(x)) = wider(slice(x))", &ops::slice, move_narrow},
    {"gather(wider(x)) = wider(gather(x))", &ops::gather, move_narrow},
    {"reshape(c * wide(x)) = c * wide(reshape(x))", &ops::reshape, move_integers},
    {"reshape(wide(c * x)) = reshape(c * wide(x))", &ops::reshape, move_repeated<move_integers>},
    {"transpose(c * wide(x)) = c * wide(transpose(x))", &ops::transpose, move_integers},
    {"slice(c * wide(x)) = c * wide(slice(x))", &ops::slice, move_integers},
    {"gather(c * wide(x)) = c * wide(gather(x))", &ops::gather, move_integers},
    {"slice(wide(c) * wide(s)) = slice(wide(c)) * slice(wide(s))", &ops::slice, slice_of_decoded},
    {"reshape(wide(c) * wide(s)) = reshape(wide(c)) * wide(s)", &ops::reshape, reshape_of_decoded},
    {"slice(wide(x)) = wide(slice(x))", &ops::slice, slice_of_broadcast},
};

}  // namespace

std::span<const AlgebraicRule> movement_rules() { return kRules; }

}  // namespace backcast
