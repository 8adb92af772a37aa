// What the gradients of gather and scatter share: index vectors brought inside the operand, and
// which windows lie inside it.
#pragma once

#include <optional>

#include "ir/ops/index_windows.h"
#include "ir/ops/val.h"

namespace backcast::ops {

/// Windows in an operand, as gather and scatter place them.
struct IndexedWindows {
  WindowNumbers numbers;
  Shape operand;
  Dims window;  // extents per operand dimension, 1 for dropped and batching ones
};

/// The index vectors moved so that every window lies inside, as gather reads them; the indices
/// themselves when it is known that they do.
Val clamped_indices(const Val& indices, const IndexedWindows& windows);

/// Which places have a window inside the operand; absent when it is known that all have.
std::optional<Val> windows_inside(const Val& indices, const IndexedWindows& windows);

/// Whether it is known that no two windows (those of `windowed`, scatter's updates) overlap.
bool known_disjoint(const Val& indices, const IndexedWindows& windows, const Shape& windowed);

}  // namespace backcast::ops
