// A tensor seen as rows along one axis: element i of row (o, n) is at o · outer_stride + n + i ·
// stride, with n below `stride`.
#pragma once

#include <cstdint>
#include <vector>

namespace backcast::ops {

struct RowsAlong {
  int64_t outer = 1;   // product of the extents before the axis
  int64_t extent = 0;  // of the axis
  int64_t stride = 1;  // product of the extents after the axis

  RowsAlong(const std::vector<int64_t>& shape, int64_t axis) {
    for (size_t d = 0; d < shape.size(); ++d) {
      const int64_t at = static_cast<int64_t>(d);
      if (at == axis) {
        extent = shape[d];
      } else {
        (at < axis ? outer : stride) *= shape[d];
      }
    }
  }

  /// Calls visit(row, first element) for every row in order; for tensors that have elements.
  template <class F>
  void each(F&& visit) const {
    for (int64_t o = 0; o < outer; ++o) {
      for (int64_t n = 0; n < stride; ++n) visit(o * stride + n, o * extent * stride + n);
    }
  }
};

}  // namespace backcast::ops
