// Sums of products of small integers go by words: of two 16-bit integers where the target
// multiplies two and adds them up in one instruction (pmaddwd, smlad), of four bytes where it
// multiplies those (vpdpbusd, usdot, sdot). Operands are seen as words of neighbours; of bytes one
// operand is constant, but for vectors.
//   Requires: definitions, before scheduling.
//   Ensures: the same values. Constants lie in words along the sum, of four bytes where there are
//   no vectors, too; a tensor keeps its place, and kernels read it through a view of words. What a
//   caller hands over in bytes, wherever it lies, is copied first.
#pragma once

#include "ir/loop/program.h"
#include "ir/target/target_info.h"

namespace backcast {

loop::Program pair_products(const loop::Program& program, const TargetInfo& target);

}  // namespace backcast
