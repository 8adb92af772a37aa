// Which loops of a scheduled kernel may run their iterations in any order and at the same time.
//
// Proved on the statements alone, so that it holds for every schedule and for kernels written by
// hand. Flat indices are sums of loop variables; seen as a number in mixed radix, the loop's
// variable must be a digit of its own in every access to what the kernel writes (and to what that
// may be written over): then no two iterations meet at an element.
#pragma once

#include <vector>

#include "ir/loop/stmt.h"

namespace backcast {

/// `loops`, all `for`, are the statements of the kernel's body or some within it.
///   Ensures: true only if all iterations of all of them are independent of each other, whatever
///   the loops around them are at; false also where that could not be proved.
bool are_independent(const loop::Kernel& kernel, const std::vector<loop::Stmt>& loops);

}  // namespace backcast
