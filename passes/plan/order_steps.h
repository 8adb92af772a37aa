// The steps of every entry point in an order that needs less memory.
//   Requires: a scheduled program without offsets.  Ensures: the same values: whoever reads, writes
//   or checks what another step writes keeps its side of it. The bound of plan_memory gets lower,
//   or the order stays as it is; what loops and branches hold keeps its order.
#pragma once

#include "ir/loop/program.h"
#include "ir/target/target_info.h"

namespace backcast {

loop::Program order_steps(const loop::Program& program, const TargetInfo& target);

}  // namespace backcast
