// Nests over disjoint parts of one result, such as the phases of a strided gradient, under one
// outer loop: a result larger than the second cache is then walked through once and not once per
// part.
#pragma once

#include <vector>

#include "ir/loop/stmt.h"
#include "ir/target/target_info.h"

namespace backcast {

/// The nests one behind the other, with those outer loops joined that all of them have, as long as
/// what every trip reads again stays in the first cache.
///   Requires: simplified nests with names of their own, whose trips may be done in any order among
///   nests: none reads what another one writes, but for an operand taken over element by element.
loop::Stmt join_loops(const std::vector<loop::Stmt>& nests, const loop::Kernel& kernel,
                      const TargetInfo& target);

}  // namespace backcast
