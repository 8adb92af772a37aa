// Steps whose intermediate tensors never exist as a whole: which rows of what each trip over a band
// computes, and what that takes. Numbers only; row_bands.cpp chooses and rewrites.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "ir/loop/program.h"
#include "passes/lower/row_steps.h"

namespace backcast {

/// A tensor that one step of a region writes and only its other steps read.
struct BandTensor {
  loop::BufferId id = -1;
  size_t producer = 0;  // a step of the region
  int64_t row_elements = 0, row_bytes = 0, rows = 0;
  struct Reader {
    size_t step = 0;
    RowAccess access;
  };
  std::vector<Reader> readers;
  int64_t bytes() const { return rows * row_bytes; }
};

/// Calls one after the other. The last one's results are whole, the others' are band tensors.
struct RowRegion {
  size_t first = 0, last = 0;            // steps of the entry point
  std::vector<const loop::Step*> calls;  // these
  std::vector<const RowKernel*> kernels;
  std::vector<BandTensor> tensors;

  const BandTensor* tensor(loop::BufferId id) const;
};

/// Which rows every trip computes. A band tensor is a window that moves along: what later trips
/// read again (a halo) stays in it, so nothing is computed twice.
struct RowTrips {
  int64_t trips = 0;
  /// Per step, trips + 1 of them: trip t computes rows [ends[t], ends[t + 1]) of the results.
  std::vector<std::vector<int64_t>> ends;
  /// Per step: rows below ends[t] that trip t or a later one still reads.
  std::vector<std::vector<int64_t>> kept;
  std::vector<int64_t> capacity;  // per step: rows of its band tensors

  Rows computed(size_t step, int64_t trip) const {
    const auto t = static_cast<size_t>(trip);
    return {ends[step][t], ends[step][t + 1]};
  }
  bool keeps_rows(size_t step) const;
};

/// Trips over `height` rows of the last step's results; nothing where windows cannot move along by
/// copies, or would be empty.
std::optional<RowTrips> trips_of(const RowRegion& region, int64_t height);

}  // namespace backcast
