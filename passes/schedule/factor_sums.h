// What is the same for all steps of the innermost loops of a sum, such as the scale of a block of
// quantised weights, multiplies their sum instead of each of them.
#pragma once

#include "ir/target/target_info.h"
#include "passes/schedule/nest.h"

namespace backcast {

/// Sets NestSchedule::factor where registers hold a second sum for each that some tile has.
///   Requires: a schedule that is otherwise complete.
void factor_sums(const loop::Definition& definition, const TargetInfo& target,
                 NestSchedule& schedule);

}  // namespace backcast
