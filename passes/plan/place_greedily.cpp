// Greedy best fit: buffer by buffer into the smallest hole that takes it, in several orders.
#include <algorithm>
#include <functional>
#include <numeric>

#include "passes/plan/place_lives.h"

namespace backcast {
namespace {

class Greedy {
 public:
  explicit Greedy(const PlacementProblem& problem) : problem_(problem), lives_(problem) {
    // By height from the other side: what each neighbour needs below this buffer.
    below_.resize(lives_.neighbours.size());
    for (size_t i = 0; i < lives_.neighbours.size(); ++i) {
      for (const Neighbour& n : lives_.neighbours[i]) below_[n.other].push_back({i, n.height});
    }
  }

  /// The end of the highest buffer.
  int64_t run(const std::vector<size_t>& order, bool lowest) {
    offsets_.assign(problem_.buffers.size(), kUnplaced);
    int64_t end = 0;
    for (const size_t i : order) {
      offsets_[i] = problem_.buffers[i].bytes == 0 ? 0 : choose(i, lowest);
      end = std::max(end, offsets_[i] + problem_.buffers[i].bytes);
    }
    return end;
  }

  const std::vector<int64_t>& offsets() const { return offsets_; }

 private:
  static constexpr int64_t kUnplaced = -1;

  /// Offsets above `after` and below `before` are taken.
  struct Taken {
    int64_t after = 0, before = 0;
  };

  int64_t choose(size_t i, bool lowest) const {
    std::vector<Taken> taken;
    // Both lists name the same neighbours in the same order: by index.
    for (size_t n = 0; n < below_[i].size(); ++n) {
      const int64_t at = offsets_[below_[i][n].other];
      if (at == kUnplaced) continue;
      taken.push_back({at - lives_.neighbours[i][n].height, at + below_[i][n].height});
    }
    std::sort(taken.begin(), taken.end(),
              [](const Taken& a, const Taken& b) { return a.after < b.after; });
    const int64_t alignment = problem_.buffers[i].alignment;
    int64_t at = 0, best = -1, best_gap = INT64_MAX;
    for (const Taken& t : taken) {
      const int64_t gap = t.after - at;
      if (gap >= 0 && gap < best_gap) {
        best = at;
        best_gap = gap;
        if (lowest) return best;
      }
      at = std::max(at, (t.before + alignment - 1) / alignment * alignment);
    }
    return best >= 0 ? best : at;
  }

  const PlacementProblem& problem_;
  PlacementLives lives_;
  std::vector<std::vector<Neighbour>> below_;
  std::vector<int64_t> offsets_;
};

}  // namespace

int64_t place_greedily(const PlacementProblem& problem, std::vector<int64_t>& offsets) {
  const std::vector<TimedBuffer>& b = problem.buffers;
  const auto area = [&](size_t i) { return b[i].bytes * (b[i].end - b[i].first); };
  const std::function<bool(size_t, size_t)> orders[] = {
      [&](size_t i, size_t k) { return b[i].bytes > b[k].bytes; },
      [&](size_t i, size_t k) { return b[i].first < b[k].first; },
      [&](size_t i, size_t k) { return area(i) > area(k); },
      [&](size_t i, size_t k) { return b[i].end - b[i].first > b[k].end - b[k].first; }};
  Greedy greedy(problem);
  int64_t best = INT64_MAX;
  for (const bool lowest : {false, true}) {
    for (const auto& less : orders) {
      std::vector<size_t> order(b.size());
      std::iota(order.begin(), order.end(), size_t{0});
      std::stable_sort(order.begin(), order.end(), less);
      const int64_t end = greedy.run(order, lowest);
      if (end >= best) continue;
      best = end;
      offsets = greedy.offsets();
    }
  }
  return best;
}

}  // namespace backcast
