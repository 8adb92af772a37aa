// Index vectors under differentiation. Indices that are constants, or clamped already (as those of
// a gradient's gradient are), need nothing more.
#include "ir/ops/index_adjoint.h"

#include <algorithm>
#include <limits>

#include "ir/ops/shape_rules.h"
#include "ir/ops/walk.h"

namespace backcast::ops {
namespace {

/// Largest start per component of an index vector.
Dims last_starts(const IndexedWindows& windows) {
  Dims last;
  for (const int64_t d : windows.numbers.start_map) {
    last.push_back(windows.operand[static_cast<size_t>(d)] -
                   windows.window[static_cast<size_t>(d)]);
  }
  return last;
}

const Literal* constant_value(const Val& value) {
  const Node& node = value.builder().node(value);
  return node.op == &ops::constant ? &node.attrs.as<ConstantAttrs>().value : nullptr;
}

/// Signed, and wide enough for the bounds.
Val signed_indices(const Val& indices, const Dims& last) {
  const bool narrow = indices.element() == ElementType::i32 && is_static(last) &&
                      std::all_of(last.begin(), last.end(), [](const Dim& d) {
                        return d.constant() <= std::numeric_limits<int32_t>::max();
                      });
  return narrow ? indices : backcast::cast(indices, ElementType::i64);
}

/// The largest starts as a scalar, or in the shape of `indices` when components differ.
Val upper_bounds(const Val& indices, const Dims& last, int64_t index_vector_dim) {
  Builder& builder = indices.builder();
  const bool uniform =
      std::all_of(last.begin(), last.end(), [&](const Dim& d) { return d == last[0]; });
  const auto scalar = [&](const Dim& d) {
    if (d.is_constant()) {
      const std::vector<double> number = {static_cast<double>(d.constant())};
      return Val(builder, builder.constant(Literal::from_doubles(indices.element(), {}, number)));
    }
    return Val(builder, builder.emit(ops::dimension, {}, DimensionAttrs{d}));
  };
  if (uniform) return scalar(last[0]);
  std::vector<ValueId> parts;
  for (const Dim& d : last) parts.push_back(backcast::reshape(scalar(d), {Dim(1)}));
  const Val vector(builder, builder.emit(ops::concat, parts, ConcatAttrs{0}));
  return backcast::broadcast(vector, indices.shape(), {index_vector_dim});
}

/// Whether the indices are constants that lie inside.
bool known_inside(const Val& indices, const IndexedWindows& windows, const Dims& last) {
  const Literal* value = constant_value(indices);
  if (value == nullptr || !is_static(last)) return false;
  const std::vector<int64_t> numbers = value->as_ints();
  int64_t step = 1;  // between components of one vector
  for (size_t d = static_cast<size_t>(windows.numbers.index_vector_dim) + 1;
       d < value->shape().size(); ++d) {
    step *= value->shape()[d];
  }
  for (size_t i = 0; i < numbers.size(); ++i) {
    const size_t component = static_cast<size_t>(static_cast<int64_t>(i) / step) % last.size();
    if (numbers[i] < 0 || numbers[i] > last[component].constant()) return false;
  }
  return true;
}

/// Whether a value is the node that clamped_indices() would write for the same bounds.
bool clamped_already(const Val& indices, const Dims& last) {
  const Node& node = indices.builder().node(indices);
  if (node.op != &ops::clamp || last.empty()) return false;
  const Node& low = indices.builder().node(node.operands[1]);
  const Node& high = indices.builder().node(node.operands[2]);
  const auto is = [](const Node& n, const Dim& wanted) {
    if (n.op == &ops::dimension) return n.attrs.as<DimensionAttrs>().value == wanted;
    if (n.op != &ops::constant || !wanted.is_constant()) return false;
    const Literal& value = n.attrs.as<ConstantAttrs>().value;
    return value.element_count() == 1 && value.as_ints()[0] == wanted.constant();
  };
  return is(low, 0) && std::all_of(last.begin(), last.end(),
                                   [&](const Dim& d) { return d == last[0] && is(high, d); });
}

}  // namespace

Val clamped_indices(const Val& indices, const IndexedWindows& windows) {
  const Dims last = last_starts(windows);
  if (last.empty() || known_inside(indices, windows, last) || clamped_already(indices, last)) {
    return indices;
  }
  const Val numbers = signed_indices(indices, last);
  const Val high = upper_bounds(numbers, last, windows.numbers.index_vector_dim);
  const ValueId zero = numbers.builder().scalar(numbers.element(), 0);
  const ValueId low = high.rank() == 0
                          ? zero
                          : backcast::broadcast(Val(numbers.builder(), zero), high.shape()).id();
  return numbers.emit(ops::clamp, {low, high});
}

std::optional<Val> windows_inside(const Val& indices, const IndexedWindows& windows) {
  const Val inside = clamped_indices(indices, windows);
  if (inside.id() == indices.id()) return std::nullopt;
  const Val same =
      backcast::compare(backcast::cast(indices, inside.element()), Comparison::eq, inside);
  const int64_t axis = windows.numbers.index_vector_dim;
  if (axis == indices.rank()) return same;
  return same.emit(ops::reduce, {}, ReduceAttrs{Reduction::bit_and, {axis}});
}

bool known_disjoint(const Val& indices, const IndexedWindows& windows, const Shape& windowed) {
  constexpr int64_t kMaxCells = 1 << 22;  // beyond, the gradient finds out at run time
  const Shape places = place_shape(indices.shape(), windows.numbers.index_vector_dim);
  if (std::all_of(places.begin(), places.end(), [](const Dim& d) { return d == Dim(1); })) {
    return true;
  }
  const Literal* value = constant_value(indices);
  if (value == nullptr || !is_static(windows.operand) || !is_static(windowed)) return false;
  const auto numbers_of = [](const Dims& dims) {
    std::vector<int64_t> numbers;
    for (const Dim& d : dims) numbers.push_back(d.constant());
    return numbers;
  };
  const std::vector<int64_t> operand = numbers_of(windows.operand), extents = numbers_of(windowed);
  int64_t cells = 1;
  for (const int64_t extent : operand) cells *= extent;
  if (cells > kMaxCells) return false;
  const PlacedWindows placed = place_windows(windows.numbers, operand, *value,
                                             numbers_of(windows.window), extents, Outside::skip);
  std::vector<bool> taken(static_cast<size_t>(cells), false);
  bool disjoint = true;
  Walk<2> walk(extents, {placed.place_strides, placed.window_strides});
  walk.each({0, 0}, [&](const auto& at) {
    const int64_t start = placed.starts[static_cast<size_t>(at[0])];
    if (start < 0) return;
    const size_t cell = static_cast<size_t>(start + at[1]);
    disjoint = disjoint && !taken[cell];
    taken[cell] = true;
  });
  return disjoint;
}

}  // namespace backcast::ops
