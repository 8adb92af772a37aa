// Checks of dimension numbers and placement of windows, for gather and scatter.
#include "ir/ops/index_windows.h"

#include <algorithm>
#include <limits>

#include "ir/graph/module.h"
#include "ir/ops/shape_rules.h"
#include "ir/ops/walk.h"

namespace backcast::ops {
namespace {

bool contains(const Ints& list, int64_t value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

void require_disjoint(const Ints& a, std::string_view a_name, const Ints& b,
                      std::string_view b_name) {
  for (const int64_t axis : a) {
    if (contains(b, axis)) fail("dimension {} is in {} and in {}", axis, a_name, b_name);
  }
}

void check_batching(const TensorType& x, const TensorType& indices, const WindowNumbers& numbers) {
  const Ints& of_operand = numbers.operand_batching_dims;
  const Ints& of_indices = numbers.indices_batching_dims;
  require_axes(of_operand, x.rank(), "the operand's batching dimension");
  require_axes(of_indices, indices.rank(), "the indices' batching dimension");
  if (of_operand.size() != of_indices.size()) {
    fail("the operand has {} batching dimensions and the indices have {}", of_operand.size(),
         of_indices.size());
  }
  if (contains(of_indices, numbers.index_vector_dim)) {
    fail("dimension {} of the indices is the index vector and a batching dimension",
         numbers.index_vector_dim);
  }
  for (size_t j = 0; j < of_operand.size(); ++j) {
    const Dim& a = x.shape[static_cast<size_t>(of_operand[j])];
    const Dim& b = indices.shape[static_cast<size_t>(of_indices[j])];
    if (!(a == b)) {
      fail("batching dimension {} of {} and {} of {} differ", of_operand[j], to_string(x),
           of_indices[j], to_string(indices));
    }
  }
}

/// Reads an index; what exceeds 64 signed bits is as good as the largest.
std::vector<int64_t> index_values(const Literal& indices) {
  std::vector<int64_t> values = indices.as_ints();
  if (indices.element() == ElementType::u64) {
    for (int64_t& v : values) v = v < 0 ? std::numeric_limits<int64_t>::max() : v;
  }
  return values;
}

}  // namespace

int64_t windowed_rank(const TensorType& indices, const WindowNumbers& numbers) {
  const int64_t vector = numbers.index_vector_dim < indices.rank() ? 1 : 0;
  return indices.rank() - vector + static_cast<int64_t>(numbers.window_dims.size());
}

std::vector<size_t> kept_dimensions(int64_t operand_rank, const WindowNumbers& numbers) {
  std::vector<size_t> kept;
  for (int64_t d = 0; d < operand_rank; ++d) {
    if (!contains(numbers.dropped_dims, d) && !contains(numbers.operand_batching_dims, d)) {
      kept.push_back(static_cast<size_t>(d));
    }
  }
  return kept;
}

void check_window_numbers(const InferContext& context, const WindowNumbers& numbers) {
  const TensorType& x = context.tensor(0);
  const TensorType& indices = require_kind(context, 1, kInteger);
  const int64_t rank = x.rank();
  if (numbers.index_vector_dim < 0 || numbers.index_vector_dim > indices.rank()) {
    fail("index_vector_dim {} is out of range for indices {}", numbers.index_vector_dim,
         to_string(indices));
  }
  const Dim components = numbers.index_vector_dim == indices.rank()
                             ? Dim(1)
                             : indices.shape[static_cast<size_t>(numbers.index_vector_dim)];
  if (!(components == Dim(static_cast<int64_t>(numbers.start_map.size())))) {
    fail("an index vector has {} components and {} operand dimensions are addressed",
         components.to_string(), numbers.start_map.size());
  }
  require_increasing(numbers.dropped_dims, rank, "the collapsed or inserted dimension");
  require_axes(numbers.start_map, rank, "the addressed dimension");
  check_batching(x, indices, numbers);
  require_disjoint(numbers.dropped_dims, "the collapsed or inserted dimensions",
                   numbers.operand_batching_dims, "the batching dimensions");
  require_disjoint(numbers.start_map, "the addressed dimensions", numbers.operand_batching_dims,
                   "the batching dimensions");
  const size_t accounted = numbers.window_dims.size() + numbers.dropped_dims.size() +
                           numbers.operand_batching_dims.size();
  if (accounted != x.shape.size()) {
    fail("{} window, collapsed or inserted, and batching dimensions do not make up {}", accounted,
         to_string(x));
  }
  require_increasing(numbers.window_dims, windowed_rank(indices, numbers), "the window dimension");
}

PlacedWindows place_windows(const WindowNumbers& numbers, const std::vector<int64_t>& operand,
                            const Literal& indices, const std::vector<int64_t>& window,
                            const std::vector<int64_t>& windowed, Outside outside) {
  const std::vector<int64_t> operand_strides = row_major_strides(operand);
  const std::vector<int64_t> index_strides = row_major_strides(indices.shape());
  const std::vector<int64_t> places = place_shape(indices.shape(), numbers.index_vector_dim);
  const std::vector<int64_t> place_strides = row_major_strides(places);
  PlacedWindows result;

  std::vector<int64_t> batching(indices.shape().size(), 0);
  for (size_t j = 0; j < numbers.operand_batching_dims.size(); ++j) {
    batching[static_cast<size_t>(numbers.indices_batching_dims[j])] =
        operand_strides[static_cast<size_t>(numbers.operand_batching_dims[j])];
  }
  const bool has_vector = numbers.index_vector_dim < static_cast<int64_t>(indices.shape().size());
  const int64_t component_stride =
      has_vector ? index_strides[static_cast<size_t>(numbers.index_vector_dim)] : 0;
  const std::vector<int64_t> values = index_values(indices);
  Walk<2> walk(places, {place_shape(index_strides, numbers.index_vector_dim),
                        place_shape(batching, numbers.index_vector_dim)});
  walk.each({0, 0}, [&](const auto& at) {
    int64_t start = at[1];
    for (size_t k = 0; k < numbers.start_map.size() && start >= 0; ++k) {
      const size_t d = static_cast<size_t>(numbers.start_map[k]);
      const int64_t index =
          values[static_cast<size_t>(at[0] + static_cast<int64_t>(k) * component_stride)];
      const int64_t last = operand[d] - window[d];
      const int64_t inside = std::clamp<int64_t>(index, 0, std::max<int64_t>(last, 0));
      const bool fits = inside == index && last >= 0;
      start = fits || outside == Outside::clamp ? start + inside * operand_strides[d] : -1;
    }
    result.starts.push_back(start);
  });

  const std::vector<size_t> kept = kept_dimensions(static_cast<int64_t>(operand.size()), numbers);
  size_t next_place = 0, next_window = 0;
  for (size_t d = 0; d < windowed.size(); ++d) {
    const bool inside = contains(numbers.window_dims, static_cast<int64_t>(d));
    result.place_strides.push_back(inside ? 0 : place_strides.at(next_place++));
    result.window_strides.push_back(inside ? operand_strides[kept.at(next_window++)] : 0);
  }
  return result;
}

}  // namespace backcast::ops
