// Which tensors a rectifier wrote: about half of their elements are zero.
#pragma once

#include <set>

#include "ir/loop/program.h"

namespace backcast {

/// The buffers, views not among them, of which every element comes from a value that is exactly
/// zero on one side of a bound: max(0, v), clip(v, 0, 6), v > 0 ? w : 0, and products of such. Not
/// where v adds what is never negative, such as the residual of a block behind a rectifier.
///   Requires: kernels that are definitions still; what others write is not among them.
std::set<loop::BufferId> rectified_buffers(const loop::Program& program);

}  // namespace backcast
