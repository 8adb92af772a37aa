// What the forward pass need not keep because a few operations make it again of what it keeps
// anyway: the backward pass reads those operations in place of their value. That is the part of
// minimum-cut rematerialisation (Bradbury et al., "JAX"; PyTorch's AOTAutograd) that fused kernels
// do for next to nothing; rematerialize.h computes again by whole calls.
//   Requires: a program as lower() leaves it.
//   Ensures: the same values. An elementwise value of the forward pass that only elementwise steps
//   and sums of its own size read behind the loss is kept no longer, provided that all large
//   tensors that it is made of are read there in any case and for no shorter.
#pragma once

#include "ir/loop/program.h"

namespace backcast {

loop::Program recompute_maps(const loop::Program& program);

}  // namespace backcast
