// See liveness.h.
#include "ir/loop/liveness.h"

#include <algorithm>

#include "ir/loop/step_access.h"

namespace backcast::loop {
namespace {

void append_flat(const std::vector<Step>& steps, std::vector<const Step*>& flat) {
  for (const Step& step : steps) {
    flat.push_back(&step);
    append_flat(step.body, flat);
    append_flat(step.otherwise, flat);
  }
}

struct Loop {
  int64_t first = 0, last = 0;
  std::string symbol;
};

/// Of one storage: where it is used, in order; whether a use is a write of all of it.
struct Use {
  int64_t at = 0;
  bool reads = false;
  BufferId id = -1;
};

class Liveness {
 public:
  Liveness(const Program& program, const EntryPoint& entry)
      : program_(program), uses_(program.buffers.size()) {
    visit(entry.steps);
  }

  std::vector<LiveRange> run() {
    std::vector<LiveRange> ranges(program_.buffers.size());
    for (size_t id = 0; id < uses_.size(); ++id) {
      if (uses_[id].empty()) continue;
      LiveRange& range = ranges[id];
      range = {uses_[id].front().at, uses_[id].back().at};
      for (const Loop& loop : loops_) {
        if (!lives_through(uses_[id], loop)) continue;
        range.first = std::min(range.first, loop.first);
        range.last = std::max(range.last, loop.last);
      }
    }
    return ranges;
  }

 private:
  void visit(const std::vector<Step>& steps) {
    for (const Step& step : steps) {
      const int64_t at = next_++;
      add_uses(step, at);
      if (step.kind == StepKind::loop) {
        loops_.push_back({at, at + count_steps(step) - 1, step.symbol});
      }
      visit(step.body);
      visit(step.otherwise);
    }
  }

  void add_uses(const Step& step, int64_t at) {
    // Reads first: a step that reads and writes a storage begins by reading it.
    for (const bool reads : {true, false}) {
      for (size_t i = 0; i < step.buffers.size(); ++i) {
        if (step.buffers[i] < 0) continue;
        if ((operand_mode(program_, step, i) != AccessMode::write) != reads) continue;
        uses_[static_cast<size_t>(program_.owner(step.buffers[i]))].push_back(
            {at, reads, step.buffers[i]});
      }
    }
  }

  bool lives_through(const std::vector<Use>& uses, const Loop& loop) const {
    const Use* first = nullptr;
    bool outside = false;
    for (const Use& use : uses) {
      const bool inside = use.at >= loop.first && use.at <= loop.last;
      outside = outside || !inside;
      if (inside && first == nullptr) first = &use;
    }
    if (first == nullptr) return false;
    return outside || first->reads || moves_with(first->id, loop.symbol);
  }

  /// Whether a part is another one in every trip.
  bool moves_with(BufferId id, const std::string& symbol) const {
    for (; program_.buffer(id).view_of >= 0; id = program_.buffer(id).view_of) {
      std::set<std::string> symbols;
      program_.buffer(id).view_offset.collect_symbols(symbols);
      if (symbols.contains(symbol)) return true;
    }
    return false;
  }

  const Program& program_;
  std::vector<std::vector<Use>> uses_;  // by owner
  std::vector<Loop> loops_;
  int64_t next_ = 0;
};

}  // namespace

namespace {

void append_runs(const Program& program, const std::vector<Step>& steps, int64_t runs,
                 std::vector<int64_t>& result) {
  for (const Step& step : steps) {
    result.push_back(runs);
    const int64_t most = step.kind == StepKind::loop ? step.count.range(program.symbols).max : 1;
    const int64_t trips = most == INT64_MAX ? 1 : most;  // nobody knows
    append_runs(program, step.body, runs * trips, result);
    append_runs(program, step.otherwise, runs, result);
  }
}

}  // namespace

std::vector<int64_t> runs_of_steps(const Program& program, const EntryPoint& entry) {
  std::vector<int64_t> runs;
  append_runs(program, entry.steps, 1, runs);
  return runs;
}

std::vector<const Step*> flat_steps(const std::vector<Step>& steps) {
  std::vector<const Step*> flat;
  append_flat(steps, flat);
  return flat;
}

int64_t count_steps(const Step& step) {
  int64_t count = 1;
  for (const std::vector<Step>* held : {&step.body, &step.otherwise}) {
    for (const Step& inner : *held) count += count_steps(inner);
  }
  return count;
}

std::vector<LiveRange> live_ranges(const Program& program, const EntryPoint& entry) {
  return Liveness(program, entry).run();
}

std::set<std::string> loop_symbols(const Program& program) {
  std::set<std::string> symbols;
  for (const EntryPoint& entry : program.entries) {
    for (const Step* step : flat_steps(entry.steps)) {
      if (step->kind == StepKind::loop) symbols.insert(step->symbol);
    }
  }
  return symbols;
}

std::set<std::string> caller_symbols(const Program& program) {
  std::set<std::string> symbols;
  for (const Buffer& buffer : program.buffers) {
    for (const Dim& extent : buffer.shape) extent.collect_symbols(symbols);
    buffer.view_offset.collect_symbols(symbols);
  }
  for (const EntryPoint& entry : program.entries) {
    for (const Step* step : flat_steps(entry.steps)) {
      step->count.collect_symbols(symbols);
      for (const Dim& size : step->sizes) size.collect_symbols(symbols);
    }
  }
  for (const std::string& bound : loop_symbols(program)) symbols.erase(bound);
  for (const std::string& bound : measured_symbols(program)) symbols.erase(bound);
  return symbols;
}

}  // namespace backcast::loop
