// Gathers, scatters and selections by rank. Indices may be negative in ONNX and never are in the
// core operators; constant ones are rewritten at import.
#include <algorithm>

#include "frontend/operators.h"
#include "frontend/rules/families.h"
#include "ir/graph/error.h"

namespace backcast {
namespace {

/// Non-negative indices along an axis of extent `extent`.
ValueId wrapped_indices(NodeContext& n, size_t input, const Dim& extent) {
  const std::optional<Literal> literal = n.known_literal(input);
  if (!literal || !extent.is_constant()) return n.e.wrap_negative(n.input(input), extent);
  Ints indices = literal->as_ints();
  for (int64_t& i : indices) {
    if (i < -extent.constant() || i >= extent.constant()) {
      n.fail(fmt::format("index {} is out of range for an axis of {}", i, extent.constant()));
    }
    if (i < 0) i += extent.constant();
  }
  return n.e.constant(Literal::from_ints(literal->shape(), indices));
}

void gather(NodeContext& n) {
  const int64_t axis = n.attr_axis("axis", 0, n.rank(0));
  const Dim extent = n.shape(0)[static_cast<size_t>(axis)];
  n.result(take_known(n, n.input(0), wrapped_indices(n, 1, extent), axis));
}

/// Input 1 without the dimensions along which its numbers are repeated, if these are all but
/// `axis`: then they name whole rows, as graphs' messages and expanded indices do.
std::optional<ValueId> row_numbers(NodeContext& n, int64_t axis) {
  const Node& node = n.e.builder().node(n.input(1));
  if (node.op != &ops::broadcast || n.known_literal(1)) return std::nullopt;
  const ValueId from = node.operands[0];
  const Ints dims = node.attrs.as<BroadcastAttrs>().dims;
  const Shape shape = n.e.shape(from);
  bool has_axis = false;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] == axis) {
      has_axis = true;
    } else if (!(shape[i] == Dim(1))) {
      return std::nullopt;
    }
  }
  if (!has_axis) return std::nullopt;
  const ValueId numbers = n.e.reshape(from, {n.shape(1)[static_cast<size_t>(axis)]});
  return n.e.wrap_negative(numbers, n.shape(0)[static_cast<size_t>(axis)]);
}

/// As much of x along every other dimension than `axis` as `shape` has.
ValueId cut_beside(Emitter& e, ValueId x, int64_t axis, const Shape& shape) {
  for (int64_t i = 0; i < e.rank(x); ++i) {
    if (i != axis) x = e.slice_axis(x, i, 0, shape[static_cast<size_t>(i)]);
  }
  return x;
}

/// result[i, j, …] = x[i, …, indices[i, j, …], …] with the index at `axis`.
void gather_elements(NodeContext& n) {
  const int64_t axis = n.attr_axis("axis", 0, n.rank(0));
  if (n.rank(1) != n.rank(0)) n.fail("data and indices have different ranks");
  if (const std::optional<ValueId> rows = row_numbers(n, axis)) {
    return n.result(n.e.take(cut_beside(n.e, n.input(0), axis, n.shape(1)), *rows, axis));
  }
  const ValueId indices = wrapped_indices(n, 1, n.shape(0)[static_cast<size_t>(axis)]);
  n.result(take_along(n.e, n.input(0), indices, axis));
}

/// Index vectors along the last axis, each component wrapped by its own extent.
ValueId wrapped_vectors(NodeContext& n, ValueId indices, const Dims& extents) {
  const ValueId sizes = n.e.cast(n.e.index_vector(extents), n.e.element(indices));
  if (!is_signed(n.e.element(indices))) return indices;
  const ValueId negative = n.e.compare(Comparison::lt, indices, 0.0);
  return n.e.select(negative, n.e.add(indices, sizes), indices);
}

int64_t vector_length(const NodeContext& n, size_t input) {
  if (n.rank(input) < 1 || !n.shape(input).back().is_constant()) {
    n.fail("the last extent of the indices has to be fixed");
  }
  return n.shape(input).back().constant();
}

void gather_nd(NodeContext& n) {
  const int64_t batch = n.attr_int("batch_dims", 0);
  const int64_t length = vector_length(n, 1);
  const int64_t rank = n.rank(0), index_rank = n.rank(1);
  if (batch < 0 || batch >= index_rank || batch + length > rank) {
    n.fail("the index vectors are longer than the data's rank");
  }
  const Shape shape = n.shape(0);
  GatherAttrs attrs;
  attrs.operand_batching_dims = attrs.indices_batching_dims = counting(batch);
  attrs.start_index_map = attrs.collapsed_slice_dims = counting(length, batch);
  attrs.offset_dims = counting(rank - batch - length, index_rank - 1);
  attrs.index_vector_dim = index_rank - 1;
  attrs.slice_sizes = shape;
  for (int64_t i = 0; i < batch + length; ++i) attrs.slice_sizes[static_cast<size_t>(i)] = Dim(1);
  const Dims extents(shape.begin() + batch, shape.begin() + batch + length);
  n.result(n.e.emit(ops::gather, {n.input(0), wrapped_vectors(n, n.input(1), extents)},
                    std::move(attrs)));
}

Combiner combiner_of(const NodeContext& n) {
  const std::string reduction = n.attr_string("reduction", "none");
  if (reduction == "none") return Combiner::assign;
  if (reduction == "add") return Combiner::add;
  if (reduction == "mul") return Combiner::mul;
  if (reduction == "min") return Combiner::min;
  if (reduction == "max") return Combiner::max;
  n.fail(fmt::format("attribute \"reduction\" is \"{}\"", reduction));
}

void scatter_elements(NodeContext& n) {
  const int64_t rank = n.rank(0);
  const int64_t axis = n.attr_axis("axis", 0, rank);
  const Shape shape = n.shape(1);
  if (n.rank(1) != rank || n.shape(2) != shape) {
    n.fail("indices and updates need equal shapes of the data's rank");
  }
  ScatterAttrs attrs;
  attrs.combiner = combiner_of(n);
  if (const std::optional<ValueId> rows = row_numbers(n, axis)) {
    attrs.update_window_dims = counting(rank);
    attrs.update_window_dims.erase(attrs.update_window_dims.begin() + axis);
    attrs.inserted_window_dims = attrs.scatter_dims_to_operand_dims = {axis};
    attrs.index_vector_dim = 1;
    return n.result(n.e.emit(ops::scatter, {n.input(0), *rows, n.input(2)}, std::move(attrs)));
  }
  const ValueId indices =
      n.e.cast(wrapped_indices(n, 1, n.shape(0)[static_cast<size_t>(axis)]), ElementType::i64);
  // Every element gets its whole coordinate, the indices' own along `axis`.
  std::vector<ValueId> coordinates;
  for (int64_t i = 0; i < rank; ++i) {
    const ValueId along = i == axis ? indices : n.e.iota(ElementType::i64, shape, i);
    coordinates.push_back(n.e.unsqueeze(along, rank));
  }
  attrs.inserted_window_dims = attrs.scatter_dims_to_operand_dims = counting(rank);
  attrs.index_vector_dim = rank;
  n.result(n.e.emit(ops::scatter, {n.input(0), n.e.concat(coordinates, rank), n.input(2)},
                    std::move(attrs)));
}

void scatter_nd(NodeContext& n) {
  const int64_t length = vector_length(n, 1);
  const int64_t rank = n.rank(0), index_rank = n.rank(1);
  if (length > rank) n.fail("the index vectors are longer than the data's rank");
  const Shape shape = n.shape(0);
  ScatterAttrs attrs;
  attrs.combiner = combiner_of(n);
  attrs.inserted_window_dims = attrs.scatter_dims_to_operand_dims = counting(length);
  attrs.update_window_dims = counting(rank - length, index_rank - 1);
  attrs.index_vector_dim = index_rank - 1;
  const Dims extents(shape.begin(), shape.begin() + length);
  n.result(n.e.emit(ops::scatter, {n.input(0), wrapped_vectors(n, n.input(1), extents), n.input(2)},
                    std::move(attrs)));
}

void top_k(NodeContext& n) {
  const int64_t axis = n.attr_axis("axis", -1, n.rank(0));
  std::optional<Dim> k;
  if (n.has_attr("k")) k = Dim(n.attr_int("k", 1));
  if (!k && n.has(1)) {
    const std::optional<Dims> known = n.known_dims(1);
    if (known && known->size() == 1) k = (*known)[0];
  }
  for (size_t output = 0; output < 2 && !k; ++output) {
    const std::optional<Shape> declared = n.declared(output);
    if (declared && static_cast<int64_t>(declared->size()) == n.rank(0)) {
      k = (*declared)[static_cast<size_t>(axis)];
    }
  }
  if (!k) k = n.dim(1);
  const ValueId best =
      n.e.emit(ops::top_k, {n.input(0)}, TopKAttrs{*k, axis, n.attr_int("largest", 1) != 0});
  if (n.wants(0)) n.set(0, n.e.get(best, 0));
  if (n.wants(1)) n.set(1, n.e.get(best, 1));
}

/// Positions below each batch's length are read backwards, the others as they are.
void reverse_sequence(NodeContext& n) {
  const int64_t rank = n.rank(0);
  const int64_t batch = n.attr_axis("batch_axis", 1, rank),
                time = n.attr_axis("time_axis", 0, rank);
  if (batch == time) n.fail("attributes \"batch_axis\" and \"time_axis\" are equal");
  if (n.rank(1) != 1) n.fail("sequence_lens have to be a vector");
  const Shape shape = n.shape(0);
  const ValueId lengths = n.e.broadcast_in(n.e.cast(n.input(1), ElementType::i64), shape, {batch});
  const ValueId position = n.e.iota(ElementType::i64, shape, time);
  const ValueId mirrored = n.e.sub(n.e.sub(lengths, 1.0), position);
  const ValueId inside = n.e.compare(Comparison::lt, position, lengths);
  n.result(take_along(n.e, n.input(0), n.e.select(inside, mirrored, position), time));
}

constexpr int64_t kNew = kNewestOpset;

const OperatorRule kRules[] = {
    {"Gather", 7, kNew, 2, 2, gather, "axis:i"},
    {"GatherElements", 11, kNew, 2, 2, gather_elements, "axis:i"},
    {"GatherND", 11, 11, 2, 2, gather_nd},
    {"GatherND", 12, kNew, 2, 2, gather_nd, "batch_dims:i"},
    {"Scatter", 9, 10, 3, 3, scatter_elements, "axis:i"},
    {"ScatterElements", 11, 15, 3, 3, scatter_elements, "axis:i"},
    {"ScatterElements", 16, kNew, 3, 3, scatter_elements, "axis:i reduction:s"},
    {"ScatterND", 11, 15, 3, 3, scatter_nd},
    {"ScatterND", 16, kNew, 3, 3, scatter_nd, "reduction:s"},
    {"TopK", 7, 9, 1, 1, top_k, "axis:i k:i"},
    {"TopK", 10, 10, 2, 2, top_k, "axis:i"},
    {"TopK", 11, kNew, 2, 2, top_k, "axis:i largest:i sorted:i"},
    {"ReverseSequence", 10, kNew, 2, 2, reverse_sequence, "batch_axis:i time_axis:i"},
};

}  // namespace

ValueId take_along(Emitter& e, ValueId x, ValueId indices, int64_t axis) {
  const int64_t rank = e.rank(x);
  x = cut_beside(e, x, axis, e.shape(indices));
  GatherAttrs attrs;
  attrs.operand_batching_dims = counting(rank);
  attrs.operand_batching_dims.erase(attrs.operand_batching_dims.begin() + axis);
  attrs.indices_batching_dims = attrs.operand_batching_dims;
  attrs.collapsed_slice_dims = attrs.start_index_map = {axis};
  attrs.index_vector_dim = rank;
  attrs.slice_sizes.assign(static_cast<size_t>(rank), Dim(1));
  return e.emit(ops::gather, {x, indices}, std::move(attrs));
}

std::span<const OperatorRule> indexing_rules() { return kRules; }

}  // namespace backcast
