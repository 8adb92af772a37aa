// Factors that neighbouring steps of a sum find side by side in memory, loaded as one register.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ir/loop/stmt.h"

namespace backcast {

/// Unrolled steps of a reduction, with one load for every `lanes` scalars that as many steps in a
/// row load from neighbouring places and only repeat in registers: each step takes its lane.
///   Requires: a number of steps that `lanes` divides; they write registers alone. `fresh` gives
///   names that nothing else has.
std::vector<loop::Stmt> join_factors(const std::vector<loop::Stmt>& steps, int32_t lanes,
                                     const std::function<std::string(const std::string&)>& fresh);

}  // namespace backcast
