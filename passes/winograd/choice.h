// What minimal filtering and direct computation of a layer take, by a model of the target. Internal
// to the pass `winograd`.
#pragma once

#include "ir/target/target_info.h"
#include "passes/winograd/tiles.h"

namespace backcast {

struct WinogradCandidate {
  WinogradForm form;
  double cycles = 0;  // until the last of the threads is done
};
/// The best way of cutting for tiles of m × m and so many threads, by the model. Sums of gradients
/// are not cut.
WinogradCandidate best_form(const WinogradConv& conv, int m, int64_t threads,
                            const TargetInfo& target);
/// What the direct form takes, by the same model.
double direct_cycles(const WinogradConv& conv, int64_t threads, const TargetInfo& target);

}  // namespace backcast
