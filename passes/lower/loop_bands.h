// Rows that a loop reads one by one, a few of them at a time: what a recurrent layer multiplies its
// inputs by is computed for some trips in a loop around these, and no tensor holds it for all.
//   Requires: fused definitions, before scheduling.
//   Ensures: the same values; up to three rows are computed twice where their number is no
//   multiple.
#pragma once

#include <optional>

#include "ir/loop/program.h"
#include "passes/lower/join_bands.h"

namespace backcast {

/// Nothing when no loop of constant length has such rows in front of it.
std::optional<loop::Program> loop_bands(const loop::Program& program,
                                        TripsTogether together = TripsTogether::as_tiles);

}  // namespace backcast
