// When a result may lie partly over an operand that ends with the step: where the kernel's order of
// accesses leaves a distance between what it writes and what it has yet to read.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "ir/loop/liveness.h"
#include "ir/loop/program.h"

namespace backcast::loop {

/// Bytes by which the parameters `reads`, all at one address, have to start above the start of
/// `written` so that the kernel writes no byte that it reads through them later. 0 or less: they
/// may start together. At most the bytes of `written`, at which nothing overlaps. Loops are walked
/// through as far as a budget goes; beyond it, and inside parallel loops, everything of one loop
/// counts as written before any of it is read. Empty: a definition, whose order is open, or
/// symbolic sizes.
std::optional<int64_t> write_read_distance(const Kernel& kernel, const std::set<std::string>& reads,
                                           const std::string& written);

/// The same for a step: a call in one piece that reaches the two storages as a whole, `read` by
/// reading and `written` by writing alone, both of one element type.
std::optional<int64_t> overlap_distance(const Program& program, const Step& step, BufferId read,
                                        BufferId written);

/// Whether a storage with this range is dead after step `at` (numbered as in flat_steps): it is the
/// last one to use it, and no loop around the step reads it again in its next trip.
bool ends_at(const EntryPoint& entry, const LiveRange& range, int64_t at);

}  // namespace backcast::loop
