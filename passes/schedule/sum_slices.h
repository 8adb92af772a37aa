// A sum whose operands no second cache holds, and which needs more passes over them than one: the
// gradient of a kernel over a batch. Slice by slice (image by image) the operands come from afar
// once, and all passes over a slice find it near.
//   Requires: fused definitions, before scheduling.
//   Ensures: such a kernel becomes two, one that sums each slice into a buffer and one that adds
//   the slices up and does what followed the sum. Sums are taken in another order.
#pragma once

#include "ir/loop/program.h"
#include "ir/target/target_info.h"

namespace backcast {

loop::Program sum_slices(const loop::Program& program, const TargetInfo& target);

}  // namespace backcast
