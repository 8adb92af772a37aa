// Chooses the schedule of a definition: one scheduler for contractions (matrix products,
// convolutions of every kind), reductions, windows and elementwise kernels. It looks only at how
// accesses depend on the axes and at TargetInfo.
#pragma once

#include <functional>

#include "ir/target/target_info.h"
#include "passes/schedule/nest.h"

namespace backcast {

/// Elements that the model takes an axis to have where run time decides.
constexpr int64_t kSomeElements = 64;

/// What a register tile of a reduction may be at most.
struct TileLimits {
  int64_t rows = 16, vectors = 16;
  bool even = false;  // vectors come in pairs, which share bytes (nibbles.h)
};

/// `is_constant` tells which buffer parameters are compile-time constants, hence packable;
/// `may_repack`: others may be rearranged by a kernel that runs before.
NestSchedule choose_schedule(const loop::Definition& definition, const loop::Kernel& kernel,
                             const TargetInfo& target,
                             const std::function<bool(const std::string&)>& is_constant,
                             bool may_repack = false, const TileLimits& limits = {});

/// What the model thinks that the chosen schedule takes, operands rearranged and results scattered
/// included: a figure for comparing forms of one definition.
double schedule_cycles(const loop::Definition& definition, const loop::Kernel& kernel,
                       const TargetInfo& target,
                       const std::function<bool(const std::string&)>& is_constant, bool may_repack);

/// The part of it that rearranging operands at run time takes under a schedule.
double rearranging_cycles(const loop::Definition& definition, const loop::Kernel& kernel,
                          const TargetInfo& target,
                          const std::function<bool(const std::string&)>& is_constant,
                          const NestSchedule& schedule);

/// Whether the first cache can hold a line from each of some places so many bytes apart.
bool holds_lines(int64_t places, int64_t pitch, const TargetInfo& target);
/// How many times as long as others stores take whose lines it cannot hold.
inline constexpr int64_t kCollidingStore = 12;

}  // namespace backcast
