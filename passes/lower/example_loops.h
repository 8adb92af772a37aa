// Chains of kernels computed example by example, so that what they hand on exists for one example
// of a batch at a time, and in shapes that the compiler knows where only run time knows how many
// examples there are.
//   Requires: fused definitions, before scheduling.
//   Ensures: the same values; steps of a chain become copies of their kernels for one example, in a
//   loop. Programs that train stay as they are.
#pragma once

#include <string>

#include "ir/loop/program.h"
#include "ir/target/target_info.h"

namespace backcast {

/// Where the caller may have threads, chains whose single examples would leave them too little to
/// share stay as they are.
/// `summary` (may be null) receives what was done: "computes 12 of 15 steps example by example".
loop::Program example_loops(const loop::Program& program, const TargetInfo& target,
                            std::string* summary = nullptr);

}  // namespace backcast
