// What gather and scatter share: the dimension numbers of StableHLO's gather, checked and applied.
#pragma once

#include <algorithm>

#include "ir/ops/ops.h"
#include "ir/ops/tensor.h"

namespace backcast::ops {

struct WindowNumbers {
  const Ints& window_dims;   // dimensions of the result (or updates) inside the window
  const Ints& dropped_dims;  // operand dimensions that the window lacks
  const Ints& operand_batching;
  const Ints& indices_batching;
  const Ints& start_map;  // operand dimension of each index component
  int64_t index_vector_dim;

  static bool contains(const Ints& list, int64_t value) {
    return std::find(list.begin(), list.end(), value) != list.end();
  }

  /// CompileError unless the numbers fit an operand and indices.
  void check(const TensorType& operand, const TensorType& indices, int64_t result_rank) const {
    require(is_integer(indices.element), "indices are {}, not integers", to_string(indices));
    require(index_vector_dim >= 0 && index_vector_dim <= indices.rank(),
            "index_vector_dim {} is outside of 0..{}", index_vector_dim, indices.rank());
    Ints dropped = dropped_dims;
    dropped.insert(dropped.end(), operand_batching.begin(), operand_batching.end());
    require_axes(dropped, operand.rank());
    Ints addressed = start_map;
    addressed.insert(addressed.end(), operand_batching.begin(), operand_batching.end());
    require_axes(addressed, operand.rank());
    require_axes(indices_batching, indices.rank());
    require(!contains(indices_batching, index_vector_dim),
            "index_vector_dim is a batching dimension");
    require(operand_batching.size() == indices_batching.size(),
            "batching dimensions differ in number");
    for (size_t i = 0; i < operand_batching.size(); ++i) {
      require(
          operand.shape[size_t(operand_batching[i])] == indices.shape[size_t(indices_batching[i])],
          "batching dimensions of {} and {} differ", to_string(operand), to_string(indices));
    }
    Dim components =
        index_vector_dim == indices.rank() ? Dim(1) : indices.shape[size_t(index_vector_dim)];
    require(components == Dim(int64_t(start_map.size())),
            "an index vector has {} components, {} are mapped", components.to_string(),
            start_map.size());
    int64_t places = indices.rank() - (index_vector_dim < indices.rank() ? 1 : 0);
    require(int64_t(window_dims.size()) + places == result_rank,
            "{} window dimensions and {} places do not make rank {}", window_dims.size(), places,
            result_rank);
    require_axes(window_dims, result_rank);
    require(std::is_sorted(window_dims.begin(), window_dims.end()),
            "window dimensions must increase");
    require(int64_t(window_dims.size() + dropped.size()) == operand.rank(),
            "{} window and {} dropped dimensions do not make rank {}", window_dims.size(),
            dropped.size(), operand.rank());
  }

  /// Start of the window per operand dimension and offset inside it, at one position of the result.
  void address(const Literal& indices, size_t operand_rank, const std::vector<int64_t>& at,
               std::vector<int64_t>& start, std::vector<int64_t>& offset) const {
    std::vector<int64_t> place, window;
    for (size_t d = 0; d < at.size(); ++d) {
      (contains(window_dims, int64_t(d)) ? window : place).push_back(at[d]);
    }
    start.assign(operand_rank, 0);
    offset.assign(operand_rank, 0);
    std::vector<int64_t> strides = row_major_strides(indices.shape());
    for (size_t k = 0; k < start_map.size(); ++k) {
      std::vector<int64_t> from = place;
      if (index_vector_dim < int64_t(strides.size()))
        from.insert(from.begin() + index_vector_dim, int64_t(k));
      int64_t flat = 0;
      for (size_t d = 0; d < from.size(); ++d) flat += from[d] * strides[d];
      start[size_t(start_map[k])] = indices.as_int(flat);
    }
    for (size_t j = 0; j < operand_batching.size(); ++j) {
      int64_t d = indices_batching[j];
      start[size_t(operand_batching[j])] = place[size_t(d > index_vector_dim ? d - 1 : d)];
    }
    size_t next = 0;
    for (size_t d = 0; d < operand_rank; ++d) {
      bool dropped = contains(dropped_dims, int64_t(d)) || contains(operand_batching, int64_t(d));
      if (!dropped) offset[d] = window[next++];
    }
  }
};

}  // namespace backcast::ops
