// Gives every arena buffer its place.
//   Requires: a scheduled program.  Ensures: offsets of buffers that are live together do not
//   overlap; arena_bytes, arena_bound and arena_alignment are set; a step's output takes the
//   storage of a dying operand where its kernel allows it (BufferParam::over). State buffers lie
//   behind the state's header in the order of Program::states(); state_bytes, state_alignment are
//   set. An arena buffer belongs to one entry point; all entry points share one arena.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/loop/program.h"
#include "ir/target/target_info.h"
#include "passes/plan/place_tightly.h"

namespace backcast {

/// How long placements are searched for: of what is emitted, or of what is only weighed.
enum class PlacementSearch { full, brief };

/// `progress` is told now and then how far a long search is.
loop::Program plan_memory(const loop::Program& program, const TargetInfo& target,
                          const PlacementProgress& progress = {},
                          PlacementSearch search = PlacementSearch::full);
/// The bound for one entry point in its present order of steps, in bytes.
int64_t arena_bound(const loop::Program& program, size_t entry, const TargetInfo& target);

}  // namespace backcast
