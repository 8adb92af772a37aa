// Large kernels become ranges of iterations, which a caller's parallel_for may share out.
//   Requires: legalised kernels.
//   Ensures: the same values in any partition: iterations are independent, and the pieces are cut
//   along them alone. Kernels whose work is not worth two threads stay as they are, and so does
//   every kernel of a target with one core (TargetInfo::parallel_grain).
#pragma once

#include "ir/loop/program.h"
#include "ir/target/target_info.h"

namespace backcast {

loop::Program parallelize(const loop::Program& program, const TargetInfo& target);

}  // namespace backcast
