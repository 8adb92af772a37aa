// Four bytes, or two integers of 16 bits, that a kernel writes one behind another as its innermost
// axis, such as the channels of an image that was given plane by plane: vectors cannot be filled
// with so few. They are put together in a word, and vectors are of words.
//   Requires: definitions, before scheduling; targets are little-endian.
//   Ensures: the same bytes; where there are no vectors, nothing changes.
#pragma once

#include "ir/loop/program.h"
#include "ir/target/target_info.h"

namespace backcast {

loop::Program store_words(const loop::Program& program, const TargetInfo& target);

}  // namespace backcast
