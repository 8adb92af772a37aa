// What the placers know about a problem before they place anything: the sections of time between
// two events, and who lives together with whom.
#pragma once

#include <cstdint>
#include <vector>

#include "passes/plan/place_buffers.h"

namespace backcast {

/// A buffer that lives together with another one.
struct Neighbour {
  size_t other = 0;
  /// Bytes by which `other` has to start above the start of the one whose neighbour it is, when
  /// that one lies below: its size, or the distance of an allowed overlap.
  int64_t height = 0;
};

struct PlacementLives {
  explicit PlacementLives(const PlacementProblem& problem);

  /// Sections [begin, end) over which buffer i lives.
  struct Span {
    size_t begin = 0, end = 0;
  };
  size_t sections = 0;
  std::vector<Span> spans;
  std::vector<std::vector<Neighbour>> neighbours;  // none for a buffer of 0 bytes
  /// Of each allowed overlap: the bytes by which the two together stay below the sum of their
  /// sizes at best, and the sections in which they meet.
  std::vector<int64_t> savings;
  std::vector<Span> meetings;

  /// Per section: the bytes that are live, less the savings.
  std::vector<int64_t> totals(const PlacementProblem& problem) const;
};

}  // namespace backcast
