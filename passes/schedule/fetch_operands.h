// Lines that caches do not hold when a product needs them, and that no machine sees coming: each
// step of a reduction asks for a few of those that are read later.
#pragma once

#include <vector>

#include "ir/target/target_info.h"
#include "passes/schedule/nest.h"

namespace backcast {

/// Shorter loops do not ask ahead.
inline constexpr int64_t kFewestFetchedSteps = 32;
/// Whether a step of a tile, `cycles` of arithmetic long, has room for `loads`, requests included,
/// in two ports: the last fifth is where they would hold each other up.
constexpr bool has_free_loads(int64_t loads, int64_t cycles) { return loads * 5 <= cycles * 8; }

/// What NestSchedule::fetches should be, in tiles whose arithmetic leaves room for the requests:
/// operands that lie across the order in which they are read, where a step comes from other lines
/// than the step before; their next strips, when they are large; and rows of large tensors that
/// tiles read or write in parts.
std::vector<Fetch> choose_fetches(const loop::Definition& definition, const loop::Kernel& kernel,
                                  const NestSchedule& schedule, const TargetInfo& target);

}  // namespace backcast
