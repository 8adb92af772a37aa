// The best placement within a budget: greedy first, then the search for less, down to the bound.
#pragma once

#include "passes/plan/place_buffers.h"

namespace backcast {

struct TightPlacement {
  std::vector<int64_t> offsets;
  int64_t bytes = 0;              // reached
  int64_t bound = 0;              // proved: least_bytes, or more where the search refuted that
  int64_t nodes = 0, visits = 0;  // of the search; 0: it was not needed
};

/// What the search is at: nodes so far, bytes reached, bound.
using PlacementProgress = std::function<void(int64_t nodes, int64_t reached, int64_t bound)>;

/// Never worse than place_greedily.
TightPlacement place_tightly(const PlacementProblem& problem, PlacementBudget budget,
                             const PlacementProgress& progress = {});

}  // namespace backcast
