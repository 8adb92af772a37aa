// Computes tensors where they would be copied to as parts of a larger one: the operands of a
// concatenation along an inner dimension (one along the outermost is a matter of views).
//   Requires: definitions, before scheduling; constant shapes.
//   Ensures: the same values. A part that one kernel writes and only kernels read is gone: they
//   write and read the larger tensor, at indices that differ by constants. What else the larger one
//   is made of keeps kernels of its own. The most bytes that live at a time do not grow.
#pragma once

#include "ir/loop/program.h"

namespace backcast {

loop::Program place_parts(const loop::Program& program);

}  // namespace backcast
