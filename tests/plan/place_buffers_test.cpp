// The placers on small problems: the search finds a placement exactly where trying every offset
// finds one.
#include <gtest/gtest.h>

#include <random>

#include "passes/plan/place_tightly.h"

namespace backcast {
namespace {

constexpr int64_t kNodes = 1 << 20;

/// Whether buffers i and k, at their offsets, may stand as they do.
bool stand_apart(const PlacementProblem& p, const std::vector<int64_t>& at, size_t i, size_t k) {
  const TimedBuffer &a = p.buffers[i], &b = p.buffers[k];
  if (a.end <= b.first || b.end <= a.first) return true;
  int64_t height_a = a.bytes, height_b = b.bytes;
  for (const AllowedOverlap& o : p.overlaps) {
    if (o.lower == i && o.upper == k) height_a = o.distance;
    if (o.lower == k && o.upper == i) height_b = o.distance;
  }
  return at[i] + height_a <= at[k] || at[k] + height_b <= at[i];
}

/// Every offset of every buffer.
bool fits_somehow(const PlacementProblem& p, int64_t capacity, std::vector<int64_t>& at) {
  const size_t i = at.size();
  if (i == p.buffers.size()) return true;
  for (int64_t offset = 0; offset + p.buffers[i].bytes <= capacity; ++offset) {
    if (offset % p.buffers[i].alignment != 0) continue;
    at.push_back(offset);
    bool stands = true;
    for (size_t k = 0; k < i && stands; ++k) stands = stand_apart(p, at, i, k);
    if (stands && fits_somehow(p, capacity, at)) return true;
    at.pop_back();
  }
  return false;
}

int64_t least_capacity(const PlacementProblem& p) {
  for (int64_t capacity = 0;; ++capacity) {
    std::vector<int64_t> at;
    if (fits_somehow(p, capacity, at)) return capacity;
  }
}

class Problems {
 public:
  explicit Problems(uint32_t seed) : random_(seed) {}

  int64_t number(int64_t least, int64_t most) {
    return least + static_cast<int64_t>(random_() % static_cast<uint64_t>(most - least + 1));
  }

  PlacementProblem next(bool overlaps) {
    PlacementProblem p;
    const int64_t count = number(2, 7);
    for (int64_t i = 0; i < count; ++i) {
      const int64_t first = number(0, 5);
      p.buffers.push_back({first, first + number(1, 4), number(1, 4), number(0, 3) == 0 ? 2 : 1});
    }
    if (overlaps) add_overlaps(p);
    return p;
  }

 private:
  /// Between a buffer in its last instant and one in its first.
  void add_overlaps(PlacementProblem& p) {
    std::vector<bool> taken(p.buffers.size(), false);
    for (size_t i = 0; i < p.buffers.size(); ++i) {
      for (size_t k = 0; k < p.buffers.size(); ++k) {
        const TimedBuffer &lower = p.buffers[i], &upper = p.buffers[k];
        if (i == k || taken[i] || taken[k] || upper.end != lower.first + 1) continue;
        if (upper.first >= lower.first || lower.bytes < 2) continue;
        taken[i] = taken[k] = true;
        p.overlaps.push_back({i, k, number(1, lower.bytes - 1)});
      }
    }
  }

  std::mt19937 random_;
};

void expect_exact(const PlacementProblem& p) {
  const int64_t least = least_capacity(p);
  EXPECT_LE(least_bytes(p), least);
  const PlacementResult fits = place_buffers(p, least, kNodes);
  ASSERT_EQ(fits.status, PlaceStatus::placed);
  EXPECT_TRUE(placement_is_valid(p, fits.offsets));
  for (size_t i = 0; i < p.buffers.size(); ++i) {
    EXPECT_LE(fits.offsets[i] + p.buffers[i].bytes, least);
    for (size_t k = 0; k < i; ++k) EXPECT_TRUE(stand_apart(p, fits.offsets, i, k));
  }
  EXPECT_EQ(place_buffers(p, least - 1, kNodes).status, PlaceStatus::infeasible);
  std::vector<int64_t> offsets;
  EXPECT_GE(place_greedily(p, offsets), least);
  EXPECT_TRUE(placement_is_valid(p, offsets));
}

TEST(PlaceBuffers, FindsTheLeastCapacity) {
  Problems problems(1);
  for (int i = 0; i < 400; ++i) expect_exact(problems.next(false));
}

TEST(PlaceBuffers, FindsTheLeastCapacityWithOverlaps) {
  Problems problems(2);
  for (int i = 0; i < 400; ++i) expect_exact(problems.next(true));
}

TEST(PlaceBuffers, RefutesWhatTheBoundDoesNot) {
  // 8 bytes are live at most, but 8 do not suffice: whoever sits beside one is in another's way.
  Problems problems(3);
  int refuted = 0;
  for (int i = 0; i < 2000 && refuted == 0; ++i) {
    const PlacementProblem p = problems.next(false);
    const PlacementResult r = place_buffers(p, least_bytes(p), kNodes);
    ASSERT_NE(r.status, PlaceStatus::undecided);
    if (r.status == PlaceStatus::placed) continue;
    std::vector<int64_t> at;
    EXPECT_FALSE(fits_somehow(p, least_bytes(p), at));
    ++refuted;
  }
  EXPECT_GT(refuted, 0);
}

TEST(PlaceBuffers, OverlapSavesTheDifference) {
  const PlacementProblem p{{{0, 2, 100, 1}, {1, 3, 100, 1}}, {{1, 0, 10}}};
  EXPECT_EQ(least_bytes(p), 110);
  const PlacementResult r = place_buffers(p, 110, kNodes);
  ASSERT_EQ(r.status, PlaceStatus::placed);
  EXPECT_EQ(r.offsets, (std::vector<int64_t>{10, 0}));
}

TEST(PlaceBuffers, TakesEmptyProblemsAndBuffers) {
  EXPECT_EQ(place_buffers({}, 0, 1).status, PlaceStatus::placed);
  EXPECT_EQ(least_bytes({}), 0);
  const PlacementProblem p{{{0, 2, 0, 8}, {1, 3, 0, 8}, {0, 3, 4, 4}}, {}};
  const PlacementResult r = place_buffers(p, 4, 100);
  ASSERT_EQ(r.status, PlaceStatus::placed);
  EXPECT_TRUE(placement_is_valid(p, r.offsets));
}

TEST(PlaceBuffers, StopsAtTheLimit) {
  Problems problems(4);
  PlacementProblem p;
  for (int i = 0; i < 40; ++i) {
    const int64_t first = problems.number(0, 30);
    p.buffers.push_back({first, first + problems.number(1, 15), problems.number(1, 1000), 1});
  }
  const PlacementResult r = place_buffers(p, least_bytes(p), 3);
  EXPECT_LE(r.nodes, 3);
  EXPECT_NE(r.status, PlaceStatus::infeasible);
}

/// Where many small buffers live long, a node is worth thousands: what was looked at counts.
TEST(PlaceBuffers, StopsWhereNodesAreDear) {
  Problems problems(5);
  PlacementProblem p;
  for (int i = 0; i < 150; ++i) {
    const int64_t first = problems.number(0, 50);
    p.buffers.push_back({first, first + problems.number(50, 150), problems.number(2, 9) * 8, 16});
  }
  constexpr int64_t kVisits = 5'000'000;
  const PlacementResult r = place_buffers(p, least_bytes(p), {1'000'000'000, kVisits});
  EXPECT_EQ(r.status, PlaceStatus::undecided);
  EXPECT_LT(r.visits, 2 * kVisits);
  EXPECT_GT(r.visits, 1000 * r.nodes);
  const TightPlacement tight = place_tightly(p, {1'000'000'000, kVisits});
  EXPECT_LT(tight.visits, 2 * kVisits);
  EXPECT_TRUE(placement_is_valid(p, tight.offsets));
}

}  // namespace
}  // namespace backcast
