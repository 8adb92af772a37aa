#include "passes/plan/place_lives.h"

#include <algorithm>

#include "ir/graph/error.h"

namespace backcast {

PlacementLives::PlacementLives(const PlacementProblem& problem) {
  std::vector<int64_t> events;
  for (const TimedBuffer& b : problem.buffers) {
    BC_CHECK(b.first < b.end && b.bytes >= 0 && b.alignment > 0, "a buffer without life or size");
    events.push_back(b.first);
    events.push_back(b.end);
  }
  std::sort(events.begin(), events.end());
  events.erase(std::unique(events.begin(), events.end()), events.end());
  sections = events.empty() ? 0 : events.size() - 1;
  const auto section_at = [&](int64_t time) {
    return static_cast<size_t>(std::lower_bound(events.begin(), events.end(), time) -
                               events.begin());
  };
  for (const TimedBuffer& b : problem.buffers) {
    spans.push_back({section_at(b.first), section_at(b.end)});
  }
  neighbours.resize(problem.buffers.size());
  for (size_t i = 0; i < spans.size(); ++i) {
    for (size_t k = 0; k < spans.size(); ++k) {
      if (i == k || problem.buffers[i].bytes == 0 || problem.buffers[k].bytes == 0) continue;
      if (spans[i].begin >= spans[k].end || spans[k].begin >= spans[i].end) continue;
      neighbours[i].push_back({k, problem.buffers[i].bytes});
    }
  }
  for (const AllowedOverlap& overlap : problem.overlaps) {
    const int64_t lower = problem.buffers[overlap.lower].bytes;
    const int64_t upper = problem.buffers[overlap.upper].bytes;
    BC_CHECK(overlap.distance > 0 && overlap.distance < lower, "a distance out of range");
    const Span &a = spans[overlap.lower], &b = spans[overlap.upper];
    meetings.push_back({std::max(a.begin, b.begin), std::min(a.end, b.end)});
    savings.push_back(lower + upper - std::max(lower, upper + overlap.distance));
    for (Neighbour& n : neighbours[overlap.lower]) {
      if (n.other == overlap.upper) n.height = overlap.distance;
    }
  }
}

std::vector<int64_t> PlacementLives::totals(const PlacementProblem& problem) const {
  std::vector<int64_t> result(sections, 0);
  for (size_t i = 0; i < spans.size(); ++i) {
    for (size_t s = spans[i].begin; s < spans[i].end; ++s) result[s] += problem.buffers[i].bytes;
  }
  for (size_t o = 0; o < meetings.size(); ++o) {
    for (size_t s = meetings[o].begin; s < meetings[o].end; ++s) result[s] -= savings[o];
  }
  return result;
}

int64_t least_bytes(const PlacementProblem& problem) {
  const std::vector<int64_t> totals = PlacementLives(problem).totals(problem);
  return totals.empty() ? 0 : *std::max_element(totals.begin(), totals.end());
}

bool placement_is_valid(const PlacementProblem& problem, const std::vector<int64_t>& offsets) {
  const std::vector<TimedBuffer>& buffers = problem.buffers;
  if (offsets.size() != buffers.size()) return false;
  const auto clear = [&](size_t low, size_t high) {
    if (offsets[low] + buffers[low].bytes <= offsets[high]) return true;
    return std::any_of(
        problem.overlaps.begin(), problem.overlaps.end(), [&](const AllowedOverlap& o) {
          return o.lower == low && o.upper == high && offsets[low] + o.distance <= offsets[high];
        });
  };
  for (size_t i = 0; i < buffers.size(); ++i) {
    if (offsets[i] < 0 || offsets[i] % buffers[i].alignment != 0) return false;
    for (size_t k = 0; k < i; ++k) {
      const bool together = buffers[i].first < buffers[k].end && buffers[k].first < buffers[i].end;
      const bool empty = buffers[i].bytes == 0 || buffers[k].bytes == 0;
      if (together && !empty && !clear(i, k) && !clear(k, i)) return false;
    }
  }
  return true;
}

}  // namespace backcast
