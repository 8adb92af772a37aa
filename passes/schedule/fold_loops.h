// A loop of one elementwise kernel on a tensor that it replaces, such as the walk of all examples
// through all trees of a forest, becomes one kernel: every element goes through all trips by
// itself, in a register.
#pragma once

#include "ir/loop/program.h"
#include "ir/target/target_info.h"

namespace backcast {

/// An element that a trip keeps where some condition holds is done as soon as it does: it would
/// hold in all later trips.
///   Requires: scheduled kernels; updates in place.
///   Ensures: the same results. Nothing changes on targets with vectors, whose elements side by
///   side hide what each waits for.
loop::Program fold_loops(const loop::Program& program, const TargetInfo& target);

}  // namespace backcast
