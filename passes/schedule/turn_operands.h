// What a kernel reads and writes, turned by kernels of its own so that its results lie along
// vectors. Windows over channels that lie outside of space: a border is no obstacle then, and
// neighbours are read again in whole registers. Sums whose terms have an order, such as the place
// of a maximum, along the innermost dimension.
//   Requires: fused definitions, before scheduling.
//   Ensures: the same values, bit for bit. A kernel works on copies in another order where the
//   model says that this is faster, copies included.
#pragma once

#include "ir/loop/program.h"
#include "ir/target/target_info.h"

namespace backcast {

loop::Program turn_operands(const loop::Program& program, const TargetInfo& target);

}  // namespace backcast
