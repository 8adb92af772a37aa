// The dimension numbers that gather and scatter share: a tensor of indices places windows in an
// operand. `windowed` is the tensor that holds the windows, gather's result or scatter's updates:
// its window dimensions run inside a window, the others over the places of the index tensor.
#pragma once

#include <vector>

#include "ir/graph/op.h"
#include "ir/ops/op_attrs.h"

namespace backcast::ops {

struct WindowNumbers {
  const Ints& window_dims;   // dimensions of `windowed`
  const Ints& dropped_dims;  // operand dimensions that are 1 in the window and absent in `windowed`
  const Ints& operand_batching_dims;
  const Ints& indices_batching_dims;
  const Ints& start_map;  // operand dimension of each component of an index vector
  int64_t index_vector_dim = 0;
};

/// CompileError unless the numbers are consistent with the types of operands 0 and 1.
void check_window_numbers(const InferContext& context, const WindowNumbers& numbers);
/// Rank of `windowed`.
int64_t windowed_rank(const TensorType& indices, const WindowNumbers& numbers);
/// Operand dimensions that are not dropped and not batching, in order: those of the window.
std::vector<size_t> kept_dimensions(int64_t operand_rank, const WindowNumbers& numbers);
/// Extents of the indices without the index vector dimension.
template <class T>
std::vector<T> place_shape(const std::vector<T>& indices, int64_t index_vector_dim) {
  std::vector<T> shape = indices;
  if (index_vector_dim < static_cast<int64_t>(shape.size())) {
    shape.erase(shape.begin() + index_vector_dim);
  }
  return shape;
}

/// A window that does not lie inside the operand moves inside (gather) or is left out (scatter).
enum class Outside { clamp, skip };

/// Everything needed to visit the elements of `windowed` in row-major order.
struct PlacedWindows {
  std::vector<int64_t> starts;  // operand element at which each place's window starts; -1: left out
  std::vector<int64_t> place_strides;   // per dimension of `windowed`: into `starts`
  std::vector<int64_t> window_strides;  // per dimension of `windowed`: in the operand, past a start
};
/// `window` has the window's extent per operand dimension, 1 for dropped and batching ones; it fits
/// into the operand.
PlacedWindows place_windows(const WindowNumbers& numbers, const std::vector<int64_t>& operand,
                            const Literal& indices, const std::vector<int64_t>& window,
                            const std::vector<int64_t>& windowed, Outside outside);

}  // namespace backcast::ops
