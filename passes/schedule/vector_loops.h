// Loops marked `vectorized` in kernels that are written as statements: each becomes loops over
// registers of lanes, widest first, so that no remainder is masked.
//   Requires: iterations are independent; lets, allocations, stores, loops and branches inside;
//   conditions and bounds do not depend on the loop's variable; a let of type index neither.
//   Ensures: the same values; no `vectorized` loop is left. Loops of an extent known at run time
//   only, or of several element types, become serial ones.
#pragma once

#include "ir/loop/stmt.h"
#include "ir/target/target_info.h"

namespace backcast {

/// `body` of a kernel.
loop::Stmt expand_vector_loops(const loop::Stmt& body, const TargetInfo& target);

}  // namespace backcast
