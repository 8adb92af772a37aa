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

namespace backcast {

loop::Program plan_memory(const loop::Program& program, const TargetInfo& target);

}  // namespace backcast
