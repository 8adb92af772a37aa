// What minimal filtering and direct computation of a layer take, by a model of the target. Internal
// to the pass `winograd`.
#pragma once

#include "ir/target/target_info.h"
#include "passes/winograd/tiles.h"

namespace backcast {

struct WinogradCandidate {
  WinogradForm form;
  double cycles = 0;
};
/// The best way of cutting for tiles of m × m, by the model.
WinogradCandidate best_form(const WinogradConv& conv, int m, const TargetInfo& target);
/// What the direct form takes, by the same model.
double direct_cycles(const WinogradConv& conv, const TargetInfo& target);

}  // namespace backcast
