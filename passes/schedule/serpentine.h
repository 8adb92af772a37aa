// Kernels in a loop walk back through what they walked forth in the trip before. Recurrent layers
// read all of their weights in every trip; where these are more than the second cache holds, it
// throws out each line before the next trip asks for it. In serpentine order the next trip begins
// with those that were read last.
//   Requires: kernels as they run (parallelize).
//   Ensures: the same bits: iterations that are proved independent run in another order. Kernels so
//   changed take the number of the trip as a size.
#pragma once

#include "ir/loop/program.h"
#include "ir/target/target_info.h"

namespace backcast {

loop::Program serpentine(const loop::Program& program, const TargetInfo& target);

}  // namespace backcast
