// One kernel for rows at borders and for those between: which rows padding stands for is told by
// sizes. What microcontrollers call band by band is in flash once.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "passes/lower/row_steps.h"

namespace backcast {

/// Kernels of rows at borders: `apart` from those of rows between, which then need not be told
/// where they are, or one for all, a third of the code.
enum class Borders : uint8_t { apart, shared };

/// Rows of the results and, by parameter that they reach in part, the rows it is passed: at least
/// those reached, as many at every place. They may begin in front of the first one there is.
struct RowPlace {
  Rows rows;
  std::map<size_t, Rows> passed;
};

/// A kernel for any of some places.
struct PlacedKernel {
  loop::Kernel kernel;
  std::vector<std::map<std::string, int64_t>> sizes;  // by place: the value of each
};

/// The kernel that computes the rows of all these places, as many at each; `name_size` names what
/// differs between them. Parameters of `apart` hold nothing but what is passed. Nothing where
/// operands depend on rows in another way than by an affine index that may be out of bounds.
std::optional<PlacedKernel> place_rows(const loop::Kernel& kernel, const RowKernel& by,
                                       const std::vector<RowPlace>& places,
                                       const std::set<size_t>& apart,
                                       const std::function<std::string(DimRange)>& name_size);

}  // namespace backcast
