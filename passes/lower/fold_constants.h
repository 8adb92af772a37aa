// What is computed of constants alone, such as weights that their reader does not convert itself,
// is a constant.
//   Requires: fused.
//   Ensures: the same values. Constants for at most twice the bytes that such a step read, or 4 KiB
//   more: what takes more room is computed in every call.
#pragma once

#include "ir/loop/program.h"

namespace backcast {

loop::Program fold_constants(const loop::Program& program);

}  // namespace backcast
