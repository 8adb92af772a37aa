// Windows that slide along an axis: neighbouring elements read the same values at other taps.
#pragma once

#include <string>

#include "passes/schedule/nest.h"

namespace backcast {

/// Taps that are unrolled, innermost or at a border. More of them are loops, and no more than
/// kLongestBorder make border tiles: each has a place of its own in the code.
constexpr int64_t kUnrolledTaps = 8, kLongestBorder = 64;

/// Taps of the reduction axis `taps` between neighbours on `axis`: element i reads at tap t + step
/// what element i + 1 reads at tap t. 0 when no two elements read the same, or when operands do not
/// agree.
int64_t window_step(const loop::Definition& definition, const loop::Kernel& kernel,
                    const std::string& axis, const loop::Axis& taps);

/// Of the definition, the reduction axis whose taps the schedule unrolls innermost because they are
/// a window along the tile; null where there is none.
const loop::Axis* window_taps(const loop::Definition& definition, const loop::Kernel& kernel,
                              const NestSchedule& schedule);

}  // namespace backcast
