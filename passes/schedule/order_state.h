// The order in which state lies in memory: the one in which training reads and writes it fastest.
#pragma once

#include "ir/loop/program.h"
#include "ir/target/target_info.h"

namespace backcast {

/// Gives every tensor of the state, together with the slots that follow it, the order of dimensions
/// in which the schedules of its kernels cost least: runs of dimensions are reversed (output ×
/// input × window becomes window × input × output), so that the axis that vectors run along lies
/// innermost and nothing has to be rearranged in every step. Buffer::order says what was done;
/// initial values follow.
///   Requires: definitions over state, before `schedule`; a kernel belongs to one call.
///   Ensures: what is computed stays the same, but for the order of sums that `schedule` then
///   chooses. State that anything but a definition touches, or a view of another shape (dimensions
///   of one element aside), stays.
///   `skips_zeros`: `schedule` will leave out factors of zero where that pays.
loop::Program order_state(const loop::Program& program, const TargetInfo& target, bool skips_zeros);

}  // namespace backcast
