// Which sums of a program leave out factors of zero, and how (nonzero_steps.h): what that asks of
// buffers is known here.
#pragma once

#include <optional>
#include <set>

#include "ir/loop/program.h"
#include "ir/target/target_info.h"
#include "passes/schedule/nonzero_steps.h"

namespace backcast {

class ZeroSkipping {
 public:
  /// `program` must outlive it; kernels of its calls and buffers may be added or change.
  ///   Requires: kernels that are definitions still.
  ZeroSkipping(const loop::Program& program, const TargetInfo& target);

  /// `trains`: the call is in an entry point that trains; `may_repack` as of choose_schedule().
  std::optional<SkippingNest> choose(const loop::Definition& definition, const loop::Kernel& kernel,
                                     const loop::Step& step, bool trains, bool may_repack) const;

  /// Whether what comes from a rectifier stands there.
  bool is_rectified(loop::BufferId id) const { return rectified_.contains(program_.owner(id)); }

 private:
  bool is_finite(loop::BufferId id, bool trains) const;

  const loop::Program& program_;
  const TargetInfo& target_;
  std::set<loop::BufferId> rectified_;
  int64_t constant_bytes_ = 0;
};

}  // namespace backcast
