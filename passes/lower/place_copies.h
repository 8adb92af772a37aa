// Computes values where they are copied to: rows of what a loop stacks, the next values of carries,
// the results of branches.
//   Requires: fused kernels, which say what they may write over.
//   Ensures: the same values. A copy disappears when its source has no other place, nothing reads
//   the target between the source's first write and the copy, and nothing writes the target as long
//   as the source is read.
#pragma once

#include "ir/loop/program.h"

namespace backcast {

loop::Program place_copies(const loop::Program& program);

}  // namespace backcast
