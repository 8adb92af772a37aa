// See stream_source.h.
#include "passes/graph/stream_source.h"

#include <algorithm>

#include "ir/graph/evaluator.h"
#include "ir/ops/narrow.h"
#include "ir/ops/ops.h"
#include "ir/ops/pointwise.h"
#include "passes/graph/constant_value.h"

namespace backcast {
namespace {

constexpr int kMostAgain = 12;  // nodes between a value and its source

Literal filled_like(const TensorType& type, const Literal& element) {
  std::vector<int64_t> shape;
  for (const Dim& extent : type.shape) shape.push_back(extent.constant());
  std::vector<std::byte> bytes;
  const int64_t count = type.element_count().constant();
  bytes.reserve(static_cast<size_t>(count * byte_size(type.element)));
  for (int64_t i = 0; i < count; ++i) {
    bytes.insert(bytes.end(), element.bytes().begin(), element.bytes().end());
  }
  return Literal(type.element, std::move(shape), std::move(bytes));
}

/// The element of a byte that becomes what is in front of the sequence.
bool find_initial(const Module& module, const Function& function, const Literal& padding,
                  StreamSource& source) {
  const ElementType element = function.type(source.value).tensor().element;
  if (element != ElementType::i8 && element != ElementType::u8) return false;
  const int low = element == ElementType::i8 ? -128 : 0;
  for (int i = 0; i < 256; ++i) {
    std::optional<Literal> now = Literal::scalar(element, low + i);
    ValueId last = source.value;
    for (size_t k = 0; now && k < source.again.size(); ++k) {
      now = made_of(module, function, source.again[k], last, *now);
      last = source.again[k];
    }
    if (!now || !(*now == padding)) continue;
    source.initial = Literal::scalar(element, low + i);
    return true;
  }
  return false;
}

bool is_uniform(const Literal& literal, int64_t axis) {
  const int64_t extent = literal.shape()[static_cast<size_t>(axis)];
  const std::vector<int64_t> first(static_cast<size_t>(extent), 0);
  return keep_indices(literal, {{axis, first}}) == literal;
}

/// The operand's axis that a broadcast spreads or keeps along one of its result; -1: none.
int64_t spread_axis(const Node& broadcast, int64_t axis) {
  const Ints& dims = broadcast.attrs.as<BroadcastAttrs>().dims;
  const auto found = std::find(dims.begin(), dims.end(), axis);
  return found == dims.end() ? -1 : found - dims.begin();
}

bool is_one(const Function& function, ValueId value, int64_t axis) {
  return function.type(value).tensor().shape[static_cast<size_t>(axis)] == Dim(1);
}

}  // namespace

StreamSource smallest_source(const Module& module, const Function& function, ValueId value,
                             const std::optional<Literal>& padding,
                             const std::function<bool(ValueId)>& in_pieces) {
  const auto element = [&](ValueId id) { return function.type(id).tensor().element; };
  StreamSource best{value, padding.value_or(Literal::scalar(element(value), 0)), {}};
  StreamSource here = best;
  for (int steps = 0; steps < kMostAgain; ++steps) {
    const Node& node = function.node(here.value);
    if (!ops::is_pointwise(*node.op)) break;
    ValueId from;
    for (const ValueId operand : node.operands) {
      if (!in_pieces(operand) || from == operand) continue;
      if (from.valid()) return best;
      from = operand;
    }
    if (!from.valid()) break;
    here.again.insert(here.again.begin(), here.value);
    here.value = from;
    here.initial = Literal::scalar(element(from), 0);
    if (byte_size(element(from)) >= byte_size(element(best.value))) continue;
    if (!padding || find_initial(module, function, *padding, here)) best = here;
  }
  return best;
}

std::optional<Literal> made_of(const Module& module, const Function& function, ValueId id,
                               ValueId value, const Literal& element) {
  const Node& node = function.node(id);
  if (!ops::is_pointwise(*node.op) && node.operands.size() > 1) return std::nullopt;
  std::vector<Value> operands;
  for (const ValueId operand : node.operands) {
    if (operand == value) {
      operands.push_back(Value(filled_like(function.type(value).tensor(), element)));
    } else if (is_made_of_constants(function, operand)) {
      operands.push_back(constant_value(module, function, operand));
    } else {
      return std::nullopt;
    }
  }
  const Literal result = evaluate_node(module, node, operands).tensor;
  if (result.element_count() < 1) return std::nullopt;
  const std::span<const std::byte> first =
      result.bytes().first(static_cast<size_t>(byte_size(result.element())));
  Literal made(result.element(), {}, {first.begin(), first.end()});
  return filled_like(result.type(), made) == result ? std::optional(made) : std::nullopt;
}

bool is_same_along(const Module& module, const Function& function, ValueId value, int64_t axis) {
  const Node& node = function.node(value);
  if (is_one(function, value, axis)) return true;
  if (node.op == &ops::broadcast) {
    const int64_t from = spread_axis(node, axis);
    return from < 0 || is_one(function, node.operands[0], from) ||
           is_same_along(module, function, node.operands[0], from);
  }
  if (ops::is_pointwise(*node.op)) {
    return std::all_of(node.operands.begin(), node.operands.end(), [&](ValueId operand) {
      return function.type(operand).tensor().rank() == 0 ||
             is_same_along(module, function, operand, axis);
    });
  }
  return node.op == &ops::constant && is_uniform(node.attrs.as<ConstantAttrs>().value, axis);
}

ValueId same_along(Builder& b, const Function& function, ValueId value, int64_t axis,
                   int64_t extent, const std::function<ValueId(ValueId)>& now) {
  const Node& node = function.node(value);
  const size_t d = static_cast<size_t>(axis);
  if (node.op == &ops::broadcast && !is_one(function, value, axis)) {
    BroadcastAttrs attrs = node.attrs.as<BroadcastAttrs>();
    attrs.shape[d] = extent;
    const int64_t from = spread_axis(node, axis);
    ValueId operand = node.operands[0];
    const bool spreads = from < 0 || is_one(function, operand, from);
    operand = spreads ? now(operand) : same_along(b, function, operand, from, extent, now);
    return b.emit(ops::broadcast, {operand}, attrs);
  }
  if (ops::is_pointwise(*node.op) && !is_one(function, value, axis)) {
    std::vector<ValueId> operands;
    for (const ValueId operand : node.operands) {
      const bool scalar = function.type(operand).tensor().rank() == 0;
      operands.push_back(scalar ? now(operand)
                                : same_along(b, function, operand, axis, extent, now));
    }
    return b.emit(*node.op, operands, node.attrs);
  }
  const Shape shape = function.type(value).tensor().shape;
  SliceAttrs first{Dims(shape.size(), Dim(0)), shape, Ints(shape.size(), 1)};
  first.limit[d] = 1;
  BroadcastAttrs spread{shape, {}};
  spread.shape[d] = extent;
  for (size_t i = 0; i < shape.size(); ++i) spread.dims.push_back(static_cast<int64_t>(i));
  return b.emit(ops::broadcast, {b.emit(ops::slice, {now(value)}, first)}, spread);
}

}  // namespace backcast
