// Which rows of what each trip over a region computes, and what that takes. Numbers only:
// row_bands.cpp and bands_for_memory.cpp choose, write_bands.cpp rewrites.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/loop/program.h"
#include "passes/lower/row_region.h"

namespace backcast {

/// How fast trips go on: so many rows of the last step's results in so many trips. Several trips
/// per row leave steps before strides a part of the rows that it takes.
struct BandHeight {
  int64_t rows = 0, trips = 1;
  friend bool operator==(const BandHeight&, const BandHeight&) = default;
};
/// Those worth a try: 2 to 64 times the rows, and several trips per row where there are strides.
std::vector<BandHeight> band_heights(const RowRegion& region);

/// Which rows every trip computes. A band tensor is a window that moves along: what later trips
/// read again (a halo) stays in it, so nothing is computed twice.
struct RowTrips {
  int64_t trips = 0;
  int64_t period = 1;  // trips after which they are alike again
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

/// Nothing where a step would read no row of an operand.
std::optional<RowTrips> trips_of(const RowRegion& region, BandHeight height);

/// What bands take, in bytes.
struct BandWork {
  int64_t windows = 0;  // room for band tensors
  int64_t whole = 0;    // what every trip reads alike
  int64_t parts = 0;    // of other operands and results, per trip
  int64_t kept = 0;     // rows copied to the front of windows and sums that grow, in all trips
  int64_t sums = 0;     // room for sums
  int64_t calls = 0;    // in all trips
};
BandWork work_of(const loop::Program& program, const RowRegion& region, const RowTrips& trips);

}  // namespace backcast
