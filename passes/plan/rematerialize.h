// Values of the forward pass computed again where the backward pass needs them (Chen et al.,
// "Training Deep Nets with Sublinear Memory Cost", 2016), chosen one by one instead of in segments.
//   Requires: steps in their final order, before planning.
//   Ensures: the same values, bit for bit: what is computed again is the same call of the same
//   kernel on the same operands. A value that lies idle across steps that hold most memory is
//   computed a second time right before its next use, together with those operands that are gone
//   by then (a chain).
// Candidates compete by the bytes they take off the steps above the goal, per operation repeated;
// after each choice everything is weighed again.
#pragma once

#include <cstdint>
#include <string>

#include "ir/loop/program.h"
#include "ir/target/target_info.h"

namespace backcast {

/// What recomputation did, for reports.
struct Recomputation {
  int64_t values = 0;  // computed again
  int64_t operations =
      0;               // more per call of each entry point, in multiply-accumulates (see work_of)
  int64_t before = 0;  // those of the entry points without recomputation
  void add(const Recomputation& other);
  /// "recomputes 12 values, +0.9 M operations (+2.4 %)".
  std::string to_string() const;
};

struct RecomputeGoal {
  int64_t live_bytes = 0;  // of the arena, at any step
  double most_work = 0;    // more, as a share of the work without recomputation
};

/// Entry points that train: the peak is lowered as long as that costs little. Others stay.
loop::Program rematerialize(const loop::Program& program, const TargetInfo& target,
                            Recomputation* done = nullptr);

/// Every entry point: no more than is needed to reach the goal; as close as it gets when that is
/// out of reach.
loop::Program rematerialize(const loop::Program& program, const TargetInfo& target,
                            const RecomputeGoal& goal, Recomputation* done = nullptr);

}  // namespace backcast
