// The search of place_buffers.h, with a stack of its own. A node places one buffer at the lowest
// offset that what lies below leaves it. What keeps the tree small:
//   - Offsets do not fall from a node to its children (at equal offsets: nor do ranks), so that
//     each set of decisions is met in one order only.
//   - Who could not start before another unplaced buffer would end leaves a hole for nothing.
//   - Per section of time, the lowest start of any unplaced buffer plus the sum of their bytes must
//     stay within the capacity.
//   - A buffer above which nothing can come any more is in nobody's way: no alternatives to it.
//   - Sections that no unplaced buffer crosses any more cut the rest into problems of their own.
// Which order of ranks finds a placement quickly differs by problem, so several take turns, with
// twice the nodes in each round.
#include "passes/plan/place_buffers.h"

#include <algorithm>
#include <array>
#include <memory>
#include <numeric>

#include "passes/plan/place_lives.h"

namespace backcast {
namespace {

constexpr int64_t kUnplaced = -1;
constexpr int64_t kProgressNodes = 1 << 12;

/// What ranks buffers, most important first: the largest go first.
enum class Rank : uint8_t { width, area, total };
constexpr std::array<std::array<Rank, 3>, 3> kRankings = {{
    {Rank::width, Rank::area, Rank::total},
    {Rank::total, Rank::area, Rank::width},
    {Rank::total, Rank::width, Rank::area},
}};

/// Buffers to place in sections [begin, end), which nobody else crosses; by rank.
struct Part {
  std::vector<size_t> members;
  size_t begin = 0, end = 0;
};

struct Candidate {
  int64_t offset = 0;
  size_t rank = 0;
  friend auto operator<=>(const Candidate&, const Candidate&) = default;
};

struct Node {
  std::shared_ptr<const Part> part;
  std::vector<Candidate> candidates;
  size_t next = 0;
  // The candidate that is placed at present, and what that left to do.
  size_t placed = SIZE_MAX;  // a buffer
  bool is_free_above = false;
  size_t raised = 0, floored = 0;  // lengths of the trails before
  std::vector<std::shared_ptr<const Part>> children;
  size_t child = 0;
  Candidate least;  // of what the children may choose
};

class Search {
 public:
  Search(const PlacementProblem& problem, int64_t capacity, const PlacementBudget& budget,
         const std::function<void(int64_t)>& progress)
      : problem_(problem),
        capacity_(capacity),
        budget_(budget),
        progress_(progress),
        lives_(problem),
        all_totals_(lives_.totals(problem)),
        overlaps_of_(problem.buffers.size()),
        marked_(lives_.sections, false) {
    for (size_t o = 0; o < problem.overlaps.size(); ++o) {
      overlaps_of_[problem.overlaps[o].lower].push_back(o);
      overlaps_of_[problem.overlaps[o].upper].push_back(o);
    }
    live_in_.resize(lives_.sections);
    for (size_t i = 0; i < problem.buffers.size(); ++i) {
      if (bytes(i) == 0) continue;
      for (size_t s = span(i).begin; s < span(i).end; ++s) live_in_[s].push_back(i);
    }
  }

  PlacementResult run() {
    PlacementResult result;
    for (int64_t share = 2 * static_cast<int64_t>(problem_.buffers.size()) + 1;; share *= 2) {
      for (const std::array<Rank, 3>& ranking : kRankings) {
        ranking_ = ranking;
        share_end_ = std::min(budget_.nodes, nodes_ + share);
        result.status = search();
        result.nodes = nodes_;
        result.visits = visits_;
        if (result.status == PlaceStatus::placed) result.offsets = std::move(solution_);
        if (result.status != PlaceStatus::undecided || is_spent()) return result;
      }
    }
  }

 private:
  enum class Outcome : uint8_t { open, solved, failed };

  int64_t bytes(size_t i) const { return problem_.buffers[i].bytes; }
  const PlacementLives::Span& span(size_t i) const { return lives_.spans[i]; }

  bool is_spent() const { return nodes_ >= budget_.nodes || visits_ >= budget_.visits; }
  void visit(size_t count) { visits_ += static_cast<int64_t>(count); }

  void reset() {
    const size_t count = problem_.buffers.size();
    offsets_.assign(count, kUnplaced);
    solution_.assign(count, 0);
    least_.assign(count, 0);
    totals_ = all_totals_;
    floors_.assign(lives_.sections, 0);
    crossing_.assign(lives_.sections, 0);
    for (size_t i = 0; i < count; ++i) {
      if (bytes(i) == 0) continue;
      for (size_t s = span(i).begin; s + 1 < span(i).end; ++s) ++crossing_[s];
    }
    raised_.clear();
    floored_.clear();
    stack_.clear();
  }

  bool can_never_fit() const {
    for (size_t i = 0; i < problem_.buffers.size(); ++i) {
      if (bytes(i) > capacity_) return true;
    }
    return std::any_of(all_totals_.begin(), all_totals_.end(),
                       [&](int64_t total) { return total > capacity_; });
  }

  PlaceStatus search() {
    if (can_never_fit()) return PlaceStatus::infeasible;
    reset();
    Node root;
    std::vector<size_t> cuts{0};
    for (size_t s = 0; s + 1 < lives_.sections; ++s) {
      if (crossing_[s] == 0) cuts.push_back(s + 1);
    }
    cuts.push_back(lives_.sections);
    std::vector<size_t> members;
    for (size_t i = 0; i < problem_.buffers.size(); ++i) {
      if (bytes(i) > 0) members.push_back(i);
    }
    split(members, cuts, root);
    if (root.children.empty()) return PlaceStatus::placed;
    stack_.push_back(std::move(root));
    Outcome outcome = enter(stack_.back());
    while (!stack_.empty()) {
      if (nodes_ >= share_end_ || is_spent()) return PlaceStatus::undecided;
      outcome = advance(outcome);
    }
    return outcome == Outcome::solved ? PlaceStatus::placed : PlaceStatus::infeasible;
  }

  /// One move of the walk: what the top of the stack makes of its child's outcome.
  Outcome advance(Outcome outcome) {
    Node& node = stack_.back();
    if (outcome == Outcome::solved) {
      if (++node.child < node.children.size()) return enter(node);
      take_back(node);
      stack_.pop_back();
      return Outcome::solved;
    }
    if (outcome == Outcome::failed) {
      take_back(node);
      if (node.is_free_above) node.next = node.candidates.size();
    }
    while (node.next < node.candidates.size()) {
      const Candidate candidate = node.candidates[node.next++];
      if (place(node, candidate)) {
        descend(node, candidate);
        if (!node.children.empty()) return enter(node);
        take_back(node);
        stack_.pop_back();
        return Outcome::solved;
      }
      take_back(node);
      if (node.is_free_above) break;
    }
    stack_.pop_back();
    return Outcome::failed;
  }

  /// Pushes the node's current child.
  Outcome enter(Node& parent) {
    ++nodes_;
    if (progress_ && nodes_ % kProgressNodes == 0) progress_(nodes_);
    Node node;
    node.part = parent.children[parent.child];
    visit(node.part->members.size());
    int64_t least_end = INT64_MAX;
    for (const size_t i : node.part->members) {
      if (offsets_[i] == kUnplaced) least_end = std::min(least_end, least_[i] + bytes(i));
    }
    for (size_t rank = 0; rank < node.part->members.size(); ++rank) {
      const size_t i = node.part->members[rank];
      const Candidate candidate{least_[i], rank};
      if (offsets_[i] != kUnplaced || candidate < parent.least || candidate.offset >= least_end) {
        continue;
      }
      node.candidates.push_back(candidate);
    }
    std::sort(node.candidates.begin(), node.candidates.end());
    stack_.push_back(std::move(node));
    return Outcome::open;
  }

  /// Puts the candidate down; false when what is left cannot fit any more.
  bool place(Node& node, const Candidate& candidate) {
    const size_t placed = node.part->members[candidate.rank];
    node.placed = placed;
    node.raised = raised_.size();
    node.floored = floored_.size();
    offsets_[placed] = solution_[placed] = candidate.offset;
    for (size_t s = span(placed).begin; s < span(placed).end; ++s) totals_[s] -= bytes(placed);
    change_savings(placed, 1);
    bool fits = candidate.offset + bytes(placed) <= capacity_;
    mark(placed, candidate.offset);
    node.is_free_above = raise_neighbours(placed, fits);
    if (fits) raise_floors();
    for (const size_t s : marked_sections_) marked_[s] = false;
    marked_sections_.clear();
    visit(node.part->end - node.part->begin);
    for (size_t s = node.part->begin; fits && s < node.part->end; ++s) {
      fits = totals_[s] == 0 || std::max(floors_[s], candidate.offset) + totals_[s] <= capacity_;
    }
    return fits;
  }

  /// Lifts whoever lives together with the placed buffer above it; whether there is nobody left.
  bool raise_neighbours(size_t placed, bool& fits) {
    bool nobody = true;
    visit(lives_.neighbours[placed].size());
    for (const Neighbour& n : lives_.neighbours[placed]) {
      if (offsets_[n.other] != kUnplaced) continue;
      nobody = false;
      const int64_t alignment = problem_.buffers[n.other].alignment;
      int64_t least = offsets_[placed] + n.height;
      if (alignment > 1) least = (least + alignment - 1) / alignment * alignment;
      if (least_[n.other] >= least) continue;
      raised_.push_back({n.other, least_[n.other]});
      least_[n.other] = least;
      fits = fits && least + bytes(n.other) <= capacity_;
      mark(n.other, raised_.back().value);
    }
    return nobody;
  }

  /// Marks the sections whose floor the buffer may have held down to `offset`.
  void mark(size_t buffer, int64_t offset) {
    for (size_t s = span(buffer).begin; s < span(buffer).end; ++s) {
      if (offset > floors_[s] || marked_[s]) continue;
      marked_[s] = true;
      marked_sections_.push_back(s);
    }
  }

  void raise_floors() {
    for (const size_t s : marked_sections_) {
      int64_t floor = INT64_MAX;
      visit(live_in_[s].size());
      for (const size_t i : live_in_[s]) {
        if (offsets_[i] == kUnplaced) floor = std::min(floor, least_[i]);
      }
      if (floor == INT64_MAX || floor <= floors_[s]) continue;
      floored_.push_back({s, floors_[s]});
      floors_[s] = floor;
    }
  }

  /// Of two that may overlap, both unplaced, the total counts the union only.
  void change_savings(size_t placed, int64_t sign) {
    for (const size_t o : overlaps_of_[placed]) {
      const AllowedOverlap& overlap = problem_.overlaps[o];
      const size_t other = overlap.lower == placed ? overlap.upper : overlap.lower;
      if (offsets_[other] != kUnplaced) continue;
      for (size_t s = lives_.meetings[o].begin; s < lives_.meetings[o].end; ++s) {
        totals_[s] += sign * lives_.savings[o];
      }
    }
  }

  void take_back(Node& node) {
    const size_t placed = node.placed;
    if (placed == SIZE_MAX) return;
    for (; floored_.size() > node.floored; floored_.pop_back()) {
      floors_[floored_.back().index] = floored_.back().value;
    }
    for (; raised_.size() > node.raised; raised_.pop_back()) {
      least_[raised_.back().index] = raised_.back().value;
    }
    change_savings(placed, -1);
    for (size_t s = span(placed).begin; s < span(placed).end; ++s) totals_[s] += bytes(placed);
    if (!node.children.empty() || node.child > 0) {
      for (size_t s = span(placed).begin; s + 1 < span(placed).end; ++s) ++crossing_[s];
    }
    node.children.clear();
    node.child = 0;
    offsets_[placed] = kUnplaced;
    node.placed = SIZE_MAX;
  }

  /// What is left below a placed candidate: the same part, or several when it was the last bridge.
  void descend(Node& node, const Candidate& candidate) {
    const size_t placed = node.placed;
    std::vector<size_t> cuts{node.part->begin};
    for (size_t s = span(placed).begin; s + 1 < span(placed).end; ++s) {
      if (--crossing_[s] == 0) cuts.push_back(s + 1);
    }
    std::vector<size_t> left;
    for (const size_t i : node.part->members) {
      if (offsets_[i] == kUnplaced) left.push_back(i);
    }
    node.least = candidate;
    if (cuts.size() == 1 && !left.empty()) {
      node.children.push_back(node.part);
      return;
    }
    node.least.rank = 0;
    cuts.push_back(node.part->end);
    split(left, cuts, node);
    // Nothing left: an empty list would hide that the crossings are counted down.
    if (node.children.empty()) node.child = 1;
  }

  void split(const std::vector<size_t>& members, const std::vector<size_t>& cuts, Node& node) {
    for (size_t c = 0; c + 1 < cuts.size(); ++c) {
      Part part{{}, cuts[c], cuts[c + 1]};
      for (const size_t i : members) {
        if (span(i).begin < part.end && part.begin < span(i).end) part.members.push_back(i);
      }
      if (part.members.empty()) continue;
      rank(part.members);
      node.children.push_back(std::make_shared<const Part>(std::move(part)));
    }
  }

  void rank(std::vector<size_t>& members) const {
    struct Row {
      std::array<int64_t, 3> keys;
      size_t member;
    };
    std::vector<Row> rows;
    for (const size_t i : members) {
      const int64_t width = problem_.buffers[i].end - problem_.buffers[i].first;
      int64_t total = 0;
      for (size_t s = span(i).begin; s < span(i).end; ++s) total = std::max(total, totals_[s]);
      Row row{{}, i};
      for (size_t k = 0; k < ranking_.size(); ++k) {
        row.keys[k] = ranking_[k] == Rank::width  ? width
                      : ranking_[k] == Rank::area ? width * bytes(i)
                                                  : total;
      }
      rows.push_back(row);
    }
    std::stable_sort(rows.begin(), rows.end(),
                     [](const Row& a, const Row& b) { return a.keys > b.keys; });
    for (size_t r = 0; r < rows.size(); ++r) members[r] = rows[r].member;
  }

  const PlacementProblem& problem_;
  int64_t capacity_;
  PlacementBudget budget_;
  const std::function<void(int64_t)>& progress_;
  PlacementLives lives_;
  std::vector<int64_t> all_totals_;
  std::vector<std::vector<size_t>> live_in_;      // per section
  std::vector<std::vector<size_t>> overlaps_of_;  // per buffer

  std::array<Rank, 3> ranking_ = kRankings[0];
  int64_t nodes_ = 0, share_end_ = 0, visits_ = 0;
  std::vector<int64_t> offsets_, solution_;
  std::vector<int64_t> least_;     // per buffer: the lowest offset that is left
  std::vector<int64_t> totals_;    // per section: bytes to place
  std::vector<int64_t> floors_;    // per section: nothing to place starts below
  std::vector<int64_t> crossing_;  // per section: unplaced buffers that live on in the next
  struct Change {
    size_t index;
    int64_t value;
  };
  std::vector<Change> raised_, floored_;  // what least_ and floors_ were
  std::vector<char> marked_;
  std::vector<size_t> marked_sections_;
  std::vector<Node> stack_;
};

}  // namespace

PlacementResult place_buffers(const PlacementProblem& problem, int64_t capacity,
                              PlacementBudget budget,
                              const std::function<void(int64_t)>& progress) {
  return Search(problem, capacity, budget, progress).run();
}

}  // namespace backcast
