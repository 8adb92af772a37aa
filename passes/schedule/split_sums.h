// Results that would leave half of a register's lanes empty share it with the next step of their
// sum: 24 features are a register of 16 lanes and one of eight features, each with two partial
// sums, which takes half of the steps. Both factors of a step come by one load, that of the operand
// repeated across the lanes.
#pragma once

#include <functional>
#include <string>

#include "ir/target/target_info.h"
#include "passes/schedule/choose.h"
#include "passes/schedule/nest.h"

namespace backcast {

/// The reduction axis along which the sums of the last segment of the vector axis can be split;
/// empty where that cannot be, or does not pay.
std::string split_axis_of(const loop::Definition& definition, const loop::Kernel& kernel,
                          const TargetInfo& target, const NestSchedule& schedule);

/// Splits the sums of the last segment of the vector axis where that saves steps; otherwise leaves
/// the schedule as it is. `choose`: what choose_schedule() says within limits.
///   Requires: a schedule as it says without, and what is to be fetched ahead.
void split_sums(const loop::Definition& definition, const loop::Kernel& kernel,
                const TargetInfo& target, const std::function<NestSchedule(TileLimits)>& choose,
                NestSchedule& schedule);

}  // namespace backcast
