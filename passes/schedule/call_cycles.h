// What the model thinks that a call takes: a figure for comparing kernels over operands in several
// orders.
#pragma once

#include "ir/loop/program.h"
#include "ir/target/target_info.h"
#include "passes/schedule/zero_skipping.h"

namespace backcast {

/// Of all definitions of `kernel`, split as `schedule` splits them, with the buffers of `step`.
/// `skipping`: what is left of products when zeros are left out; null: they are multiplied.
double call_cycles(const loop::Program& program, const loop::Kernel& kernel, const loop::Step& step,
                   const TargetInfo& target, const ZeroSkipping* skipping = nullptr);

}  // namespace backcast
