// Steps whose intermediate tensors never exist as a whole: which rows of what each trip over a band
// computes, and what that takes. Numbers only; row_bands.cpp chooses and rewrites.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "ir/loop/program.h"
#include "passes/lower/row_steps.h"

namespace backcast {

/// A tensor that one step of a region writes and only its other steps read.
struct BandTensor {
  loop::BufferId id = -1;
  size_t producer = 0;   // a step of the region
  size_t dimension = 0;  // its rows
  /// Rows lie in several pieces: every trip writes the whole window and reads all of it.
  bool scattered = false;
  int64_t row_elements = 0, row_bytes = 0, rows = 0;
  struct Reader {
    size_t step = 0;
    RowAccess access;
  };
  std::vector<Reader> readers;
  int64_t bytes() const { return rows * row_bytes; }
};

/// Calls one after the other. The last one's results are whole, the others' are band tensors; calls
/// among them whose results every row needs as a whole go first. Points into a program and a
/// RowRegions.
struct RowRegion {
  size_t first = 0, last = 0;             // steps of the entry point
  std::vector<const loop::Step*> before;  // of these, what runs once
  std::vector<const loop::Step*> calls;   // the others
  std::vector<const RowKernel*> kernels;
  std::vector<BandTensor> tensors;

  const BandTensor* tensor(loop::BufferId id) const;
};

inline constexpr size_t kMaxBandSteps = 16;

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
  int64_t kept = 0;     // rows copied to the front of windows, in all trips
  int64_t calls = 0;    // in all trips
};
BandWork work_of(const loop::Program& program, const RowRegion& region, const RowTrips& trips);

/// The regions of an entry point. Program and entry point must outlive it.
class RowRegions {
 public:
  RowRegions(const loop::Program& program, const loop::EntryPoint& entry);

  /// Whether the step can be a part of one.
  bool fits(size_t step) const { return !kernels_[step].empty(); }
  /// The steps from `first` to `last`, when the first and the last are among those that run by
  /// rows, and what these but the last write is used by them alone.
  std::optional<RowRegion> region(size_t first, size_t last) const;

 private:
  struct Forms;

  bool is_inside(loop::BufferId id, size_t first, size_t last) const;
  const RowKernel* by_outermost(size_t step) const;
  const RowKernel* form_of(size_t step, const Forms& forms) const;
  bool sees_rows(loop::BufferId written, const RowAccess& write, loop::BufferId read,
                 const loop::Kernel& reader, const RowAccess& access) const;
  Forms forms(size_t first, size_t last) const;
  BandTensor band_tensor(const loop::Step& step, size_t producer, const RowAccess& access) const;
  bool add_before(RowRegion& region, const loop::Step& step,
                  const std::set<loop::BufferId>& touched, std::set<loop::BufferId>& written) const;
  bool add_readers(RowRegion& region, size_t s, const std::set<loop::BufferId>& written) const;

  const loop::Program& program_;
  const loop::EntryPoint& entry_;
  std::vector<std::vector<RowKernel>> kernels_;  // per step: its forms
  std::vector<std::set<size_t>> users_;          // per owner: steps that name it
};

}  // namespace backcast
