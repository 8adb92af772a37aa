// Kernels that meet subnormal numbers take them for zero, where each would cost the target a
// hundred cycles and more: products with constants that weight decay has all but extinguished, and
// updates of state, whose moments decay.
//   Requires: constants as kernels read them.
//   Ensures: the same values but for subnormal operands and results of the kernels it marks.
#pragma once

#include "ir/loop/program.h"
#include "ir/target/target_info.h"

namespace backcast {

loop::Program flush_subnormals(const loop::Program& program, const TargetInfo& target);

}  // namespace backcast
