// Lines that caches do not hold when a product needs them, and that no machine sees coming: each
// step of a reduction asks for a few of those that are read later.
#pragma once

#include <vector>

#include "ir/target/target_info.h"
#include "passes/schedule/nest.h"

namespace backcast {

/// What NestSchedule::fetches should be, in tiles whose arithmetic leaves room for the requests:
/// operands that lie across the order in which they are read, where a step comes from other lines
/// than the step before; their next strips, when they are large; and rows of large tensors that
/// tiles read or write in parts.
std::vector<Fetch> choose_fetches(const loop::Definition& definition, const loop::Kernel& kernel,
                                  const NestSchedule& schedule, const TargetInfo& target);

}  // namespace backcast
