// Integer constants that fit in bytes or 16 bits. Of 32 bits, such as the weights of a quantised
// depthwise layer: scalar cores load those as quickly, from half or a quarter of the flash, and so
// do vectors that small integers are widened for on the way. Of 64 bits where they are places to
// look up, which are no longer clamped where all of them lie inside.
//   Requires: definitions, before scheduling; words of several integers have been made.
//   Ensures: the same values, of narrower constants.
#pragma once

#include "ir/loop/program.h"
#include "ir/target/target_info.h"

namespace backcast {

loop::Program narrow_constants(const loop::Program& program, const TargetInfo& target);

}  // namespace backcast
