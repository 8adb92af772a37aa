// Definitions → scheduled loops, and what follows until a program is ready for an emitter.
#pragma once

#include "ir/loop/program.h"
#include "ir/target/target_info.h"

namespace backcast {

struct ScheduleOptions {
  /// Sums may leave out factors of zero (nonzero_steps.h), so that a run's time depends on its
  /// inputs.
  bool skip_zeros = true;
  /// That the caller will have. With several, operands are rearranged whole by kernels of their
  /// own, which threads share out, instead of panel by panel, which one thread has to itself.
  int64_t threads = 1;
};

/// Expands every definition under the schedule that choose_schedule() finds for the target, and
/// packs constants.
///   Requires: fused definitions; each kernel called by one step.
///   Ensures: no definition is left; the same results (fused multiply-adds aside).
/// `skipping` (may be null) receives the model nodes of the sums that leave out zeros.
loop::Program schedule(const loop::Program& program, const TargetInfo& target,
                       const ScheduleOptions& options = {}, std::vector<Loc>* skipping = nullptr);

/// Replaces what the target has no instruction for: half floats become conversions on bit patterns,
/// missing rounding and square roots become calls of the math library; collects the functions
/// called.
///   Requires: scheduled kernels.  Ensures: emitters decide nothing.
loop::Program legalize(const loop::Program& program, const TargetInfo& target);

/// Kernels that are equal but for their names become one.
loop::Program share_kernels(const loop::Program& program);

}  // namespace backcast
