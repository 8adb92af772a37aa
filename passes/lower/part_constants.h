// Parts of a constant that are read one by one, such as a recurrent layer's weights for some of its
// gates, become constants: only what is one itself is packed for the kernel that reads it.
//   Ensures: the same values and no byte more of constants.
#pragma once

#include "ir/loop/program.h"

namespace backcast {

loop::Program part_constants(const loop::Program& program);

}  // namespace backcast
