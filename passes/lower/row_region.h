// Steps whose intermediate tensors need not exist as a whole, since rows of each are made from rows
// of those before.
#pragma once

#include <cstdint>
#include <map>
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

/// Calls one after the other. The last one's results are whole, and so are those of steps aside:
/// what is summed along rows, or read outside of the region, too. The others' are band tensors.
/// Calls among them whose results every row needs as a whole go first. Points into a program and a
/// RowRegions.
struct RowRegion {
  size_t first = 0, last = 0;             // of the list of steps
  std::vector<const loop::Step*> before;  // of these, what runs once
  std::vector<const loop::Step*> calls;   // the others
  std::vector<const RowKernel*> kernels;
  std::vector<BandTensor> tensors;
  std::map<loop::BufferId, size_t> summed;  // owners, by steps that write them behind all trips

  const BandTensor* tensor(loop::BufferId id) const;
  /// Whether results of the step are whole.
  bool is_aside(size_t step) const;
  /// The step before it whose rows a step aside goes through in the trip that computes them.
  std::optional<size_t> producer_of_rows(size_t step) const;
  /// Else the step behind it that reads the same rows of the same tensor.
  std::optional<size_t> twin(size_t step) const;
};

inline constexpr size_t kMaxBandSteps = 16;

/// The regions of a list of steps, an entry point's or those that a loop holds. Program and steps,
/// which are among the program's, must outlive it.
class RowRegions {
 public:
  /// `aside`: steps aside can be part of one.
  RowRegions(const loop::Program& program, const std::vector<loop::Step>& steps, bool aside = true);

  /// Whether the step can be a part of one.
  bool fits(size_t step) const { return !kernels_[step].empty(); }
  /// The steps from `first` to `last`, when the first and the last are among those that run by
  /// rows, and what these but the last and steps aside write is used by them alone.
  std::optional<RowRegion> region(size_t first, size_t last) const;

 private:
  struct Forms;

  void add_users(const std::vector<loop::Step>& steps);
  bool is_inside(loop::BufferId id, size_t first, size_t last) const;
  bool stays_inside(const loop::Step& step, const RowKernel& form, size_t first, size_t last) const;
  const RowKernel* by_outermost(const Forms& forms, bool sums) const;
  const RowKernel* form_of(size_t step, const Forms& forms) const;
  bool goes_aside(size_t step, const RowKernel& form, const Forms& forms) const;
  bool add_results(RowRegion& region, size_t step, const RowKernel& form,
                   std::set<loop::BufferId>& written, std::set<loop::BufferId>& whole) const;
  bool sees_rows(loop::BufferId written, const RowAccess& write, loop::BufferId read,
                 const loop::Kernel& reader, const RowAccess& access) const;
  Forms forms(size_t first, size_t last, bool sums) const;
  std::optional<RowRegion> region_of(const Forms& forms) const;
  BandTensor band_tensor(const loop::Step& step, size_t producer, const RowAccess& access) const;
  bool add_before(RowRegion& region, const loop::Step& step,
                  const std::set<loop::BufferId>& touched, const std::set<loop::BufferId>& whole,
                  std::set<loop::BufferId>& written) const;
  bool is_in_place(const loop::Step& step, const RowKernel& form, const RowAccess& read) const;
  bool add_readers(RowRegion& region, size_t s, const std::set<loop::BufferId>& written) const;

  const loop::Program& program_;
  const std::vector<loop::Step>& steps_;
  const bool aside_;
  std::vector<std::vector<RowKernel>> kernels_;  // per step: its forms
  std::vector<std::set<size_t>> users_;          // per owner: steps that name it
  std::set<loop::BufferId> optional_;            // outputs that callers may leave out
};

}  // namespace backcast
