// Sums over all rows, computed band by band: what begins them, what the rows of a band add, and
// what a kernel makes of them in the end.
#pragma once

#include <vector>

#include "ir/loop/program.h"

namespace backcast {

/// A call in three parts. Sums are rounded in another order than the kernel's.
struct RowSums {
  loop::Step begin;                     // fills the sums with what the accumulators begin with
  loop::Kernel trip;                    // adds; its parameters are `buffers`
  std::vector<loop::BufferId> buffers;  // of the call, then the sums, twice: read and written
  loop::Step finish;                    // the kernel's results, from the sums
};

/// Adds the sums' buffers and the kernels of the first and the last part to `program`.
///   Requires: a call that match_rows() finds to sum.
RowSums split_sums(loop::Program& program, const loop::Step& call);

/// Bytes of the sums.
int64_t sum_bytes(const loop::Kernel& kernel);

}  // namespace backcast
