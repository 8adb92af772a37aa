// When a result may lie partly over an operand that ends with the step: where the kernel's order of
// accesses leaves a distance between what it writes and what it has yet to read.
#pragma once

#include <cstdint>
#include <optional>

#include "ir/loop/liveness.h"
#include "ir/loop/program.h"

namespace backcast::loop {

/// How far apart a result and an operand have to start so that no byte is written that is read
/// later, in bytes: either is enough. 0 or less: they may start together.
struct OverlapDistance {
  int64_t read_above = 0;     // the operand above the result; at most the bytes of the result
  int64_t written_above = 0;  // the result above the operand; at most the bytes of the operand
};

/// The distances of a step: a call in one piece that reaches the storage `read` by reading and
/// `written` by writing alone, through one parameter. Loops are walked through as far as a budget
/// goes; beyond it, and inside parallel loops, everything of one loop counts as written before any
/// of it is read. Empty: another step, a definition, whose order is open, or sizes that are no
/// constants.
std::optional<OverlapDistance> overlap_distance(const Program& program, const Step& step,
                                                BufferId read, BufferId written);

/// The distances of the steps from `first` to `last` (numbered as in flat_steps), of which the
/// first writes `written` first and the last reads `read` last: chains in bands of rows. Trips of
/// loops are gone through one by one, and all that a call writes counts as written before it reads
/// any. Empty where a loop ends among these steps or its trips are not known, where they branch,
/// where `read` is written, and where parts of either depend on a loop around all of these.
std::optional<OverlapDistance> overlap_distance(const Program& program, const EntryPoint& entry,
                                                int64_t first, int64_t last, BufferId read,
                                                BufferId written);

/// Whether a storage with this range is dead after step `at` (numbered as in flat_steps): it is the
/// last one to use it, and no loop around the step reads it again in its next trip.
bool ends_at(const EntryPoint& entry, const LiveRange& range, int64_t at);

}  // namespace backcast::loop
