// The bound itself is tried first, since most programs reach it; then the gap is halved. What the
// search proves impossible raises the bound.
#include "passes/plan/place_tightly.h"

#include <algorithm>
#include <numeric>

namespace backcast {
namespace {

/// What all offsets of canonical placements are multiples of.
int64_t granule(const PlacementProblem& problem) {
  int64_t result = 0;
  for (const TimedBuffer& b : problem.buffers) {
    result = std::gcd(result, std::gcd(b.bytes, b.alignment));
  }
  for (const AllowedOverlap& o : problem.overlaps) result = std::gcd(result, o.distance);
  return std::max<int64_t>(result, 1);
}

int64_t end_of(const PlacementProblem& problem, const std::vector<int64_t>& offsets) {
  int64_t end = 0;
  for (size_t i = 0; i < offsets.size(); ++i) {
    end = std::max(end, offsets[i] + problem.buffers[i].bytes);
  }
  return end;
}

}  // namespace

TightPlacement place_tightly(const PlacementProblem& problem, PlacementBudget budget,
                             const PlacementProgress& progress) {
  TightPlacement best;
  best.bytes = problem.buffers.empty() ? 0 : place_greedily(problem, best.offsets);
  best.bound = least_bytes(problem);
  const int64_t step = granule(problem);
  int64_t low = best.bound, capacity = low;
  while (low < best.bytes && best.nodes < budget.nodes && best.visits < budget.visits) {
    const PlacementBudget share(std::max<int64_t>((budget.nodes - best.nodes) / 2, 1),
                                std::max<int64_t>((budget.visits - best.visits) / 2, 1));
    PlacementResult tried = place_buffers(problem, capacity, share, [&](int64_t nodes) {
      if (progress) progress(best.nodes + nodes, best.bytes, best.bound);
    });
    best.nodes += std::max<int64_t>(tried.nodes, 1);
    best.visits += tried.visits;
    if (tried.status == PlaceStatus::placed) {
      best.offsets = std::move(tried.offsets);
      best.bytes = end_of(problem, best.offsets);
    } else {
      low = capacity + step;
      if (tried.status == PlaceStatus::infeasible) best.bound = low;
    }
    capacity = low + std::max<int64_t>(best.bytes - low, 0) / 2 / step * step;
  }
  return best;
}

}  // namespace backcast
