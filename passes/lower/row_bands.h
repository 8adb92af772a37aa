// Chains of kernels computed band by band, so that what they hand on stays in a near cache.
//   Requires: fused definitions, before scheduling.
//   Ensures: the same values; steps of a chain become copies of their kernels over some rows, in a
//   loop where bands are alike. Tensors within a chain shrink to windows that move along: rows that
//   the next band reads again are kept, and nothing is computed twice.
#pragma once

#include <optional>
#include <vector>

#include "ir/loop/program.h"
#include "ir/target/target_info.h"
#include "passes/lower/row_borders.h"
#include "passes/lower/row_trips.h"

namespace backcast {

/// What choosing goes by; cycles and bytes.
struct BandCosts {
  /// What surely stays near; tensors of more than half of it come from afar. 0: there is nothing to
  /// gain.
  int64_t near_bytes = 0;
  double near_bytes_per_cycle = 0, far_bytes_per_cycle = 0;
  double call_cycles = 0;     // of a kernel, beside its work
  double macs_per_cycle = 1;  // multiplications that arithmetic does at best
};
BandCosts band_costs(const TargetInfo& target);

/// One kernel for all rows where flash counts.
Borders borders_for(const TargetInfo& target);

loop::Program row_bands(const loop::Program& program, const BandCosts& costs,
                        Borders borders = Borders::apart);
loop::Program row_bands(const loop::Program& program, const TargetInfo& target);

/// Steps that run one behind the other: an entry point's, or those that a step holds.
struct StepList {
  size_t entry = 0;
  const std::vector<loop::Step>* steps = nullptr;
  int64_t number = 0;  // of the first (liveness.h)
};
/// All of them, those of a step behind those around it. They point into the program.
std::vector<StepList> step_lists(const loop::Program& program);

/// Steps of a list as one region.
struct BandChoice {
  size_t first = 0, last = 0;
  BandHeight height;
  size_t list = 0;  // of step_lists()
  friend bool operator==(const BandChoice&, const BandChoice&) = default;
};
/// These choices, whatever they cost; nothing when some of the steps cannot run in such bands.
///   Requires: no step is part of two of them.
std::optional<loop::Program> band_steps(const loop::Program& program,
                                        const std::vector<BandChoice>& choices,
                                        Borders borders = Borders::apart);

}  // namespace backcast
