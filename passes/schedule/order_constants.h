// Constants of a product with fewer results than half a vector has lanes, such as the channels of
// an image: lanes lie along the sum instead, and the constants so that they are read in whole
// vectors.
//   Requires: definitions, before scheduling.
//   Ensures: the same values. A constant lies in another order where the model finds the kernel
//   faster for it.
#pragma once

#include "ir/loop/program.h"
#include "ir/target/target_info.h"

namespace backcast {

loop::Program order_constants(const loop::Program& program, const TargetInfo& target);

}  // namespace backcast
