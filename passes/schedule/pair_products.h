// Sums of products of 16-bit integers go by pairs, where the target multiplies two and adds them up
// in one instruction (pmaddwd, smlad): operands are seen as words of two neighbours.
//   Requires: definitions, before scheduling.
//   Ensures: the same values. Constants lie in pairs along the sum, bytes in fours where there are
//   no vectors; a tensor keeps its place, and kernels read it through a view of words.
#pragma once

#include "ir/loop/program.h"
#include "ir/target/target_info.h"

namespace backcast {

loop::Program pair_products(const loop::Program& program, const TargetInfo& target);

}  // namespace backcast
