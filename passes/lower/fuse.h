// Fuses kernels by substituting compute definitions into one another.
//   Requires: a program as lower() leaves it, before scheduling.
//   Ensures: the same values; fewer kernels. A definition without a reduction disappears into its
//   consumers where that repeats no arithmetic, or only conversions of constants; what follows a
//   reduction elementwise becomes its epilogue. Written parameters know which read ones they may
//   take the storage of (`over`).
// Fusion sees definitions only, never an operator.
#pragma once

#include "ir/loop/program.h"
#include "ir/target/target_info.h"

namespace backcast {

loop::Program fuse(const loop::Program& program, const TargetInfo& target);

/// Makes kernels that no output needs disappear, with their buffers' uses.
loop::Program remove_dead_kernels(const loop::Program& program);

}  // namespace backcast
