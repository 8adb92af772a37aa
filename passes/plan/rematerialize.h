// Values of the forward pass computed again where the backward pass needs them, when that is cheap.
//   Requires: fused kernels as definitions, before scheduling; training entry points.
//   Ensures: the same values. An elementwise result that would lie idle across the steps that hold
//   most memory is computed a second time, from operands that are there anyhow, right before its
//   next use (Chen et al., "Training Deep Nets with Sublinear Memory Cost", 2016, at the price of
//   one more pass over the tensor).
#pragma once

#include "ir/loop/program.h"

namespace backcast {

loop::Program rematerialize(const loop::Program& program);

}  // namespace backcast
