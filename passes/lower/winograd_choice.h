// Whether minimal filtering pays for a layer, in which form, and what it costs in precision.
// Internal to the pass `winograd`.
#pragma once

#include <vector>

#include "ir/target/target_info.h"
#include "passes/lower/winograd.h"
#include "passes/lower/winograd_kernels.h"
#include "passes/lower/winograd_weights.h"

namespace backcast {

/// A machine whose memory is counted in kilobytes: scratch is kept small, F(4×4) with its fourfold
/// weights is left alone, and the arena must not grow.
bool is_microcontroller(const TargetInfo& target);

struct WinogradError {
  double direct = 0, transformed = 0;
};
/// Largest error of a layer's results over the largest result: in the layer's type against a wider
/// one, on tiles of random numbers, with its own weights. Always the same random numbers. That of
/// integers is zero, or something is wrong.
WinogradError measure_error(const WinogradConv& conv, const WinogradWeights& weights, int m,
                            bool use_fma);

struct WinogradCandidate {
  WinogradForm form;
  double cycles = 0;
};
/// The best way of cutting for tiles of m × m, by the model.
WinogradCandidate best_form(const WinogradConv& conv, int m, const TargetInfo& target);
/// What the direct form takes, by the same model.
double direct_cycles(const WinogradConv& conv, const TargetInfo& target);

}  // namespace backcast
