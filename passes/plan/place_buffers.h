// Exact placement of buffers with known lives in a given number of bytes: a tree search over
// canonical placements, in which every buffer rests on the ground or on buffers placed before it,
// from the bottom upwards. After Moffitt, "MiniMalloc: A Lightweight Memory Allocator for
// Hardware-Accelerated Machine Learning", ASPLOS 2023. Knows nothing of programs or kernels.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace backcast {

/// Live in the half-open interval of time [first, end), not empty; 0 bytes are allowed.
struct TimedBuffer {
  int64_t first = 0, end = 0;
  int64_t bytes = 0;
  int64_t alignment = 1;  // of the offset; a positive number
};

/// The two may share bytes although they live together: it is enough that `upper` starts at least
/// `distance` bytes (1 or more) above the start of `lower`, instead of behind its end. A buffer is
/// in at most one overlap at any time, and the distance is less than the bytes of `lower`.
struct AllowedOverlap {
  size_t lower = 0, upper = 0;  // indices of buffers
  int64_t distance = 1;
};

struct PlacementProblem {
  std::vector<TimedBuffer> buffers;
  std::vector<AllowedOverlap> overlaps;
};

enum class PlaceStatus { placed, infeasible, undecided };

/// What a search may take. Counted, not timed, so that results are the same everywhere.
struct PlacementBudget {
  int64_t nodes = 0;
  /// Buffers and sections of time looked at, some 10^9 in a few seconds: a node takes from a few of
  /// them to millions, where many small buffers live long.
  int64_t visits = INT64_MAX;

  PlacementBudget(int64_t node_limit, int64_t visit_limit = INT64_MAX)
      : nodes(node_limit), visits(visit_limit) {}
};

struct PlacementResult {
  PlaceStatus status = PlaceStatus::undecided;
  std::vector<int64_t> offsets;  // placed: one per buffer, in bytes
  int64_t nodes = 0;             // of the search
  int64_t visits = 0;
};

/// Least number of bytes that any placement needs: the most that is live at one time, where a pair
/// that may overlap counts for what the two together cannot be less than.
int64_t least_bytes(const PlacementProblem& problem);

/// Offsets so that everything ends at `capacity` or below, "infeasible" when there are none, or
/// "undecided" when the budget is spent. `progress`, where given, is told the nodes now and then.
PlacementResult place_buffers(const PlacementProblem& problem, int64_t capacity,
                              PlacementBudget budget,
                              const std::function<void(int64_t)>& progress = {});

/// Bytes up to the end of the highest buffer: several orders of greedy best fit, the best kept.
/// Always succeeds; `offsets` gets one per buffer.
int64_t place_greedily(const PlacementProblem& problem, std::vector<int64_t>& offsets);

/// Whether no two buffers that live together share bytes beyond what `overlaps` allow, and every
/// offset is aligned and not negative.
bool placement_is_valid(const PlacementProblem& problem, const std::vector<int64_t>& offsets);

}  // namespace backcast
