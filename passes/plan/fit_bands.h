// Bands of rows (row_bands.h) for the sake of memory, where those that save time do not make a
// program fit: no more of them than it needs.
//   Requires: fused definitions, before scheduling. Of programs that train, what the backward pass
//   reads again stays whole and is left to recomputation (fit_memory.h); layers in front of all
//   that is trained are like those of inference, but hosts leave them as they are.
//   Ensures: the same values. Where bands can do it, the program, scheduled and planned, fits;
//   otherwise it takes the least that was found.
#pragma once

#include <functional>
#include <string>

#include "ir/loop/program.h"
#include "ir/target/target_info.h"

namespace backcast {

/// The passes behind, from definitions to a planned program.
using Planned = std::function<loop::Program(const loop::Program&)>;

/// `ram` bounds arena and state of the planned program, in bytes.
/// `summary` (may be null) receives the trade where there is one: "computes 6 of 31 steps in bands,
/// which copy 30720 bytes, arena 221184 → 98304 bytes".
loop::Program fit_bands(const loop::Program& program, const TargetInfo& target, int64_t ram,
                        const Planned& planned, std::string* summary = nullptr);

/// The passes behind without and with recomputation.
struct PlannedBoth {
  Planned once, again;
};

/// Where nobody said how much RAM there is: on a microcontroller the bands that are worth what they
/// take, in time and in code, once all is done that saves memory; elsewhere the program as it is.
loop::Program worthwhile_bands(const loop::Program& program, const TargetInfo& target,
                               const PlannedBoth& planned, std::string* summary = nullptr);

}  // namespace backcast
