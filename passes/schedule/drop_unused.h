// Constants and intermediate values that no step reads or writes any more leave the program:
// originals of packed weights, values that fusion swallowed.
//   Requires: nothing.  Ensures: every constant and arena buffer belongs to a step; inputs, outputs
//   and state stay; the order of the buffers and the results are the same.
#pragma once

#include "ir/loop/program.h"

namespace backcast {

loop::Program drop_unused(const loop::Program& program);

}  // namespace backcast
