// A beam search over the sets of steps that can have run: a state is such a set, the bytes that are
// live then and the peak on the way there; of two ways to one set, the lower peak stays. With a
// beam as wide as there are sets, which small programs have, this is exact.
#include "passes/plan/order_steps.h"

#include <algorithm>
#include <unordered_map>

#include "passes/plan/plan_memory.h"
#include "passes/plan/step_graph.h"

namespace backcast {
namespace {

// States kept, times steps: bounds the time (well below a second for a thousand steps).
constexpr size_t kStates = 12'000;
constexpr size_t kWidest = 2'000, kNarrowest = 8;

/// How a state came about, for reading the order off at the end.
struct Trace {
  int64_t before = -1;  // index of a trace
  int32_t step = 0;
};

struct State {
  std::vector<int32_t> waits;  // per step: predecessors to run; -1: has run
  std::vector<int32_t> left;   // per storage: steps to run that touch it
  std::vector<int32_t> ready;  // ascending
  int64_t live = 0, peak = 0;
  uint64_t key = 0;    // of the set
  int64_t trace = -1;  // the last step's
};

/// A step that a state may run next, and what that would lead to.
struct Move {
  size_t from = 0;
  int32_t step = 0;
  int64_t live = 0, peak = 0;
  uint64_t key = 0;
};

/// Spreads a step's number over 64 bits (the finalizer of splitmix64).
uint64_t spread(uint64_t x) {
  x += UINT64_C(0x9e3779b97f4a7c15);
  x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
  return x ^ (x >> 31);
}

class Beam {
 public:
  explicit Beam(const StepGraph& graph) : graph_(graph) {
    width_ = std::clamp(kStates / (graph.steps.size() + 1), kNarrowest, kWidest);
  }

  std::vector<int32_t> run() {
    std::vector<State> states{start()};
    for (size_t level = 0; level < graph_.steps.size(); ++level) {
      std::vector<State> next;
      for (const Move& move : best_moves(states)) next.push_back(after(states[move.from], move));
      states = std::move(next);
    }
    std::vector<int32_t> order;
    for (int64_t at = states[0].trace; at >= 0; at = traces_[static_cast<size_t>(at)].before) {
      order.push_back(traces_[static_cast<size_t>(at)].step);
    }
    std::reverse(order.begin(), order.end());
    return order;
  }

 private:
  State start() const {
    State state;
    state.left = graph_.uses;
    for (size_t s = 0; s < graph_.steps.size(); ++s) {
      state.waits.push_back(graph_.steps[s].predecessors);
      if (state.waits.back() == 0) state.ready.push_back(static_cast<int32_t>(s));
    }
    return state;
  }

  Move try_step(const std::vector<State>& states, size_t from, int32_t step) const {
    const State& state = states[from];
    const StepGraph::StepNode& node = graph_.steps[static_cast<size_t>(step)];
    Move move{from, step, state.live, state.peak, state.key ^ spread(static_cast<uint64_t>(step))};
    int64_t during = state.live, freed = 0;
    for (const int32_t s : node.storage) {
      const size_t i = static_cast<size_t>(s);
      if (state.left[i] == graph_.uses[i]) during += graph_.bytes[i];
      if (state.left[i] == 1) freed += graph_.bytes[i];
    }
    move.peak = std::max(move.peak, during - taken_over(state, node));
    move.live = during - freed;
    return move;
  }

  /// Bytes that the step need not find anew, since it writes over operands that end with it.
  int64_t taken_over(const State& state, const StepGraph::StepNode& node) const {
    int64_t saved = 0;
    std::vector<int32_t> taken;
    for (const StepGraph::Takeover& t : node.takeovers) {
      const size_t w = static_cast<size_t>(t.written), r = static_cast<size_t>(t.read);
      const bool dies = state.left[r] == 1 && state.left[w] == graph_.uses[w];
      const auto is_taken = [&](int32_t s) {
        return std::find(taken.begin(), taken.end(), s) != taken.end();
      };
      if (!dies || is_taken(t.written) || is_taken(t.read)) continue;
      taken.push_back(t.written);
      taken.push_back(t.read);
      saved += graph_.bytes[w];
    }
    return saved;
  }

  /// The best way to each set, the best sets first.
  std::vector<Move> best_moves(const std::vector<State>& states) const {
    const auto better = [](const Move& a, const Move& b) {
      return a.peak != b.peak ? a.peak < b.peak : a.live < b.live;
    };
    std::vector<Move> moves;
    std::unordered_map<uint64_t, size_t> known;
    for (size_t from = 0; from < states.size(); ++from) {
      for (const int32_t step : states[from].ready) {
        const Move move = try_step(states, from, step);
        const auto [found, fresh] = known.try_emplace(move.key, moves.size());
        if (fresh) {
          moves.push_back(move);
        } else if (better(move, moves[found->second])) {
          moves[found->second] = move;
        }
      }
    }
    std::stable_sort(moves.begin(), moves.end(), better);
    if (moves.size() > width_) moves.resize(width_);
    return moves;
  }

  State after(const State& from, const Move& move) {
    State state = from;
    const StepGraph::StepNode& node = graph_.steps[static_cast<size_t>(move.step)];
    state.live = move.live;
    state.peak = move.peak;
    state.key = move.key;
    traces_.push_back({from.trace, move.step});
    state.trace = static_cast<int64_t>(traces_.size()) - 1;
    state.waits[static_cast<size_t>(move.step)] = -1;
    state.ready.erase(std::find(state.ready.begin(), state.ready.end(), move.step));
    for (const int32_t s : node.storage) --state.left[static_cast<size_t>(s)];
    for (const int32_t next : node.successors) {
      if (--state.waits[static_cast<size_t>(next)] > 0) continue;
      state.ready.insert(std::lower_bound(state.ready.begin(), state.ready.end(), next), next);
    }
    return state;
  }

  const StepGraph& graph_;
  size_t width_;
  std::vector<Trace> traces_;
};

/// Orders a list of steps of an entry point, then those that its loops hold. `needed`: the bound of
/// the arena as it is.
void order(loop::Program& program, size_t entry, std::vector<loop::Step>& steps,
           const TargetInfo& target, int64_t& needed) {
  if (steps.size() >= 3) {
    const std::vector<loop::Step> given = steps;
    const StepGraph graph(program, steps);
    std::vector<loop::Step> ordered;
    for (const int32_t step : Beam(graph).run())
      ordered.push_back(given[static_cast<size_t>(step)]);
    steps = std::move(ordered);
    const int64_t then = arena_bound(program, entry, target);
    if (then >= needed) steps = given;
    needed = std::min(needed, then);
  }
  for (loop::Step& step : steps) order(program, entry, step.body, target, needed);
}

}  // namespace

loop::Program order_steps(const loop::Program& program, const TargetInfo& target) {
  loop::Program result = program;
  for (size_t e = 0; e < result.entries.size(); ++e) {
    int64_t needed = arena_bound(result, e, target);
    if (needed > 0) order(result, e, result.entries[e].steps, target, needed);
  }
  return result;
}

}  // namespace backcast
