// Products with one-hot rows are rows that are looked up; what their adjoints sum is scattered.
#include <algorithm>
#include <numeric>

#include "passes/graph/algebra.h"

namespace backcast {
namespace {

using Result = std::optional<ValueId>;

/// The axis of a broadcast's operand that becomes `axis`; none: it repeats the operand along it.
std::optional<size_t> source_axis(const BroadcastAttrs& attrs, int64_t axis) {
  const auto found = std::find(attrs.dims.begin(), attrs.dims.end(), axis);
  if (found == attrs.dims.end()) return std::nullopt;
  return static_cast<size_t>(found - attrs.dims.begin());
}

/// Whether every element is its position along the axis.
bool counts_along(const Builder& b, ValueId id, int64_t axis) {
  const Node& node = b.node(id);
  if (node.op == &ops::iota) return node.attrs.as<IotaAttrs>().axis == axis;
  if (node.op == &ops::broadcast) {
    const std::optional<size_t> from = source_axis(node.attrs.as<BroadcastAttrs>(), axis);
    return from &&
           b.tensor_type(node.operands[0]).shape[*from] ==
               node.type.tensor().shape[static_cast<size_t>(axis)] &&
           counts_along(b, node.operands[0], static_cast<int64_t>(*from));
  }
  const Literal* constant = constant_of(b, id);
  if (!constant || is_float(constant->element())) return false;
  const std::vector<int64_t>& shape = constant->shape();
  int64_t inner = 1;
  for (size_t d = static_cast<size_t>(axis) + 1; d < shape.size(); ++d) inner *= shape[d];
  for (int64_t i = 0; i < constant->element_count(); ++i) {
    if (constant->as_int(i) != i / inner % shape[static_cast<size_t>(axis)]) return false;
  }
  return true;
}

/// A value that is a broadcast along the axis, without it; none for any other.
Result without_axis(Builder& b, ValueId id, int64_t axis) {
  const Node node = b.node(id);
  if (node.op != &ops::broadcast) return std::nullopt;
  BroadcastAttrs attrs = node.attrs.as<BroadcastAttrs>();
  ValueId source = node.operands[0];
  if (const std::optional<size_t> from = source_axis(attrs, axis)) {
    Dims shape = b.tensor_type(source).shape;
    if (!(shape[*from] == Dim(1))) return std::nullopt;
    shape.erase(shape.begin() + static_cast<int64_t>(*from));
    attrs.dims.erase(attrs.dims.begin() + static_cast<int64_t>(*from));
    source = b.emit(ops::reshape, {source}, ReshapeAttrs{shape});
  }
  attrs.shape.erase(attrs.shape.begin() + axis);
  for (int64_t& d : attrs.dims) d -= d > axis ? 1 : 0;
  return b.emit(ops::broadcast, {source}, attrs);
}

/// The numbers whose one-hot rows along `axis` are `id`: cast(i = 0, 1, 2, …).
Result numbers_of(Builder& b, ValueId id, int64_t axis) {
  const Node node = b.node(id);
  Result hit;
  if (node.op == &ops::cast) hit = node.operands[0];
  if (node.op == &ops::select && is_splat(b, node.operands[1], 1) &&
      is_splat(b, node.operands[2], 0)) {
    hit = node.operands[0];
  }
  if (!hit || b.tensor_type(*hit).element != ElementType::boolean) return std::nullopt;
  const Node test = b.node(*hit);
  if (test.op != &ops::compare || test.attrs.as<CompareAttrs>().direction != Comparison::eq) {
    return std::nullopt;
  }
  if (is_float(b.tensor_type(test.operands[0]).element)) return std::nullopt;
  for (const size_t side : {size_t{0}, size_t{1}}) {
    if (!counts_along(b, test.operands[side], axis)) continue;
    if (const Result numbers = without_axis(b, test.operands[1 - side], axis)) return numbers;
  }
  return std::nullopt;
}

/// One operand of a product, and what the product sums over.
struct Side {
  ValueId value;
  const Ints& contract;
};

/// `rows` where 0 <= number < count, zeros elsewhere; the numbers' axes begin at `at`.
ValueId where_in_range(Builder& b, ValueId rows, ValueId numbers, const Dim& count, int64_t at) {
  const TensorType type = b.tensor_type(rows), numbered = b.tensor_type(numbers);
  const auto all = [&](const TensorType& like, ValueId scalar) {
    return b.emit(ops::broadcast, {scalar}, BroadcastAttrs{like.shape, {}});
  };
  const auto number = [&](const Dim& value) {
    return all(numbered, b.emit(ops::cast, {b.emit(ops::dimension, {}, DimensionAttrs{value})},
                                CastAttrs{numbered.element}));
  };
  const auto compare = [&](Comparison direction, const Dim& with) {
    return b.emit(ops::compare, {numbers, number(with)}, CompareAttrs{direction});
  };
  const ValueId inside =
      b.emit(ops::bit_and, {compare(Comparison::ge, Dim(0)), compare(Comparison::lt, count)});
  Ints dims(numbered.shape.size());
  std::iota(dims.begin(), dims.end(), at);
  const ValueId wide = b.emit(ops::broadcast, {inside}, BroadcastAttrs{type.shape, dims});
  const ValueId zero = b.scalar(type.element, 0);
  return b.emit(ops::select, {wide, rows, all(type, zero)});
}

/// Sum over k of (i == k) * t[k, …]: row i of t.
Result look_up(Builder& b, const Side& one, const Side& table, bool numbers_first) {
  if (one.contract.size() != 1) return std::nullopt;
  const Result numbers = numbers_of(b, one.value, one.contract[0]);
  if (!numbers) return std::nullopt;
  const TensorType type = b.tensor_type(table.value);
  const int64_t rank = static_cast<int64_t>(b.tensor_type(*numbers).shape.size());
  const int64_t axis = table.contract[0], others = static_cast<int64_t>(type.shape.size()) - 1;
  GatherAttrs attrs;
  attrs.collapsed_slice_dims = attrs.start_index_map = {axis};
  attrs.index_vector_dim = rank;
  attrs.slice_sizes = type.shape;
  attrs.slice_sizes[static_cast<size_t>(axis)] = Dim(1);
  attrs.offset_dims.resize(static_cast<size_t>(others));
  std::iota(attrs.offset_dims.begin(), attrs.offset_dims.end(), numbers_first ? rank : 0);
  const ValueId rows = b.emit(ops::gather, {table.value, *numbers}, attrs);
  return where_in_range(b, rows, *numbers, type.shape[static_cast<size_t>(axis)],
                        numbers_first ? 0 : others);
}

/// Sum over all p of (i[p] == k) * g[p, …]: every g[p] is added to row i[p].
Result add_up(Builder& b, const Node& node, const Side& one, const Side& rows, bool numbers_first) {
  const int64_t rank = static_cast<int64_t>(b.tensor_type(one.value).shape.size());
  if (static_cast<int64_t>(one.contract.size()) != rank - 1 || rank < 2) return std::nullopt;
  if (!std::is_sorted(one.contract.begin(), one.contract.end()) ||
      !std::is_sorted(rows.contract.begin(), rows.contract.end())) {
    return std::nullopt;
  }
  int64_t axis = 0;  // the one that is not summed over
  while (axis < rank - 1 && one.contract[static_cast<size_t>(axis)] == axis) ++axis;
  const Result numbers = numbers_of(b, one.value, axis);
  if (!numbers) return std::nullopt;
  const TensorType type = node.type.tensor();
  ScatterAttrs attrs;
  attrs.combiner = Combiner::add;
  attrs.inserted_window_dims = attrs.scatter_dims_to_operand_dims = {
      numbers_first ? 0 : static_cast<int64_t>(type.shape.size()) - 1};
  attrs.index_vector_dim = rank - 1;
  const int64_t all = static_cast<int64_t>(b.tensor_type(rows.value).shape.size());
  for (int64_t d = 0; d < all; ++d) {
    if (!std::binary_search(rows.contract.begin(), rows.contract.end(), d)) {
      attrs.update_window_dims.push_back(d);
    }
  }
  return b.emit(ops::scatter, {filled(b, type, 0), *numbers, rows.value}, attrs);
}

Result one_hot_product(Builder& b, const Node& node) {
  const DotGeneralAttrs& attrs = node.attrs.as<DotGeneralAttrs>();
  if (!attrs.lhs_batch.empty()) return std::nullopt;
  const Side left{node.operands[0], attrs.lhs_contract},
      right{node.operands[1], attrs.rhs_contract};
  for (const bool numbers_first : {true, false}) {
    const Side& one = numbers_first ? left : right;
    const Side& other = numbers_first ? right : left;
    if (const Result rows = look_up(b, one, other, numbers_first)) return rows;
    if (const Result sums = add_up(b, node, one, other, numbers_first)) return sums;
  }
  return std::nullopt;
}

constexpr AlgebraicRule kRules[] = {
    {"dot(one_hot(i), t) = gather(t, i), and its adjoint a scatter", &ops::dot_general,
     one_hot_product},
};

}  // namespace

std::span<const AlgebraicRule> one_hot_rules() { return kRules; }

}  // namespace backcast
