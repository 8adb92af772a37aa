// Moving elements about without looking at them.
#pragma once

#include <vector>

#include "ir/graph/literal.h"

namespace backcast::ops {

/// result[i…] = x[start + Σ i_d · strides_d], row-major in `shape`; strides of extents of 1 and
/// below are not looked at.
Literal strided_copy(const Literal& x, std::vector<int64_t> shape, int64_t start,
                     const std::vector<int64_t>& strides);

/// stride · step, or 0 where fewer than two positions need it (the product might overflow).
inline int64_t scaled_stride(int64_t stride, int64_t step, int64_t extent) {
  return extent > 1 ? stride * step : 0;
}

}  // namespace backcast::ops
