// Chains of kernels computed band by band, so that what they hand on stays in a near cache.
//   Requires: fused definitions, before scheduling.
//   Ensures: the same values; steps of a chain become copies of their kernels over some rows, in a
//   loop where bands are alike. Tensors within a chain shrink to windows that move along: rows that
//   the next band reads again are kept, and nothing is computed twice.
#pragma once

#include <optional>

#include "ir/loop/program.h"
#include "ir/target/target_info.h"

namespace backcast {

/// What choosing goes by; cycles and bytes.
struct BandCosts {
  /// What surely stays near; larger tensors come from afar. 0: there is nothing to gain.
  int64_t near_bytes = 0;
  double near_bytes_per_cycle = 0, far_bytes_per_cycle = 0;
  double call_cycles = 0;  // of a kernel, beside its work
};
BandCosts band_costs(const TargetInfo& target);

/// Steps of an entry point as one region, `height` rows of the last one's results at a time.
struct BandChoice {
  size_t first = 0, last = 0;
  int64_t height = 0;
};

loop::Program row_bands(const loop::Program& program, const BandCosts& costs);
loop::Program row_bands(const loop::Program& program, const TargetInfo& target);
/// This choice for the first entry point, whatever it costs; nothing when these steps cannot run
/// in such bands.
std::optional<loop::Program> band_steps(const loop::Program& program, const BandChoice& choice);

}  // namespace backcast
