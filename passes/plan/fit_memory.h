// Recomputes no more than is needed for a program to fit a given amount of memory.
//   Requires: steps in their final order, before planning.
//   Ensures: the same values; planned afterwards, arena and state together take at most that much.
#pragma once

#include <cstdint>
#include <string>

#include "ir/graph/error.h"
#include "ir/loop/program.h"
#include "ir/target/target_info.h"

namespace backcast {

/// What fit_memory() throws; `least` is the smallest bound that it could have met.
struct DoesNotFit : CompileError {
  DoesNotFit(const std::string& message, int64_t least_bytes)
      : CompileError(message), least(least_bytes) {}
  int64_t least;
};

/// `ram` bounds arena and state of the planned program, in bytes. `summary` (may be null) receives
/// the trade: "recomputes 12 values, +0.9 M operations (+2.4 %), arena 592000 → 441000 bytes".
/// DoesNotFit when recomputation cannot make the program fit, with the least it takes, the step
/// that takes most and the values that live there by the names of the model.
loop::Program fit_memory(const loop::Program& program, const TargetInfo& target, int64_t ram,
                         std::string* summary = nullptr);

}  // namespace backcast
