#include "passes/plan/fit_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "ir/loop/liveness.h"
#include "ir/loop/step_access.h"
#include "passes/plan/order_steps.h"
#include "passes/plan/plan_memory.h"
#include "passes/plan/rematerialize.h"
#include "passes/schedule/parallelize.h"

namespace backcast {
namespace {

using loop::BufferClass;
using loop::BufferId;
using loop::Program;

constexpr int kMaxAttempts = 8;

/// The step of all entry points during which most of the arena is live, and what is.
struct Peak {
  std::string entry;
  Loc loc;
  int64_t bytes = 0;
  std::vector<BufferId> live;  // largest first
};

/// Bytes of the arena that lie in one of the ranges [begin, end).
int64_t covered(std::vector<std::pair<int64_t, int64_t>> ranges) {
  std::sort(ranges.begin(), ranges.end());
  int64_t bytes = 0, end = 0;
  for (const auto& [first, last] : ranges) {
    bytes += std::max<int64_t>(last - std::max(first, end), 0);
    end = std::max(end, last);
  }
  return bytes;
}

/// Of a planned program.
Peak peak_of(const Program& program) {
  Peak peak;
  for (const loop::EntryPoint& entry : program.entries) {
    const std::vector<loop::LiveRange> ranges = loop::live_ranges(program, entry);
    const std::vector<const loop::Step*> steps = loop::flat_steps(entry.steps);
    for (size_t s = 0; s < steps.size(); ++s) {
      Peak here{entry.name, steps[s]->loc, 0, {}};
      std::vector<std::pair<int64_t, int64_t>> places;  // a result may lie where an operand dies
      for (size_t id = 0; id < ranges.size(); ++id) {
        const BufferId buffer = static_cast<BufferId>(id);
        if (program.buffer(buffer).kind != BufferClass::arena) continue;
        const int64_t at = static_cast<int64_t>(s);
        if (ranges[id].first > at || ranges[id].last < at) continue;
        const int64_t offset = program.buffer(buffer).offset;
        if (offset < 0) continue;  // a view
        places.emplace_back(offset, offset + program.storage_bytes(buffer));
        here.live.push_back(buffer);
      }
      here.bytes = covered(std::move(places));
      if (here.bytes > peak.bytes) peak = std::move(here);
    }
  }
  std::stable_sort(peak.live.begin(), peak.live.end(), [&](BufferId a, BufferId b) {
    return program.storage_bytes(a) > program.storage_bytes(b);
  });
  return peak;
}

[[noreturn]] void fail(const Program& planned, int64_t ram) {
  constexpr size_t kMost = 8;
  const bool trains = loop::writes_state(planned);
  const int64_t least = planned.arena_bytes + planned.state_bytes;
  std::string text = fmt::format("--ram {}: the least that {} is {} bytes", ram,
                                 trains ? "recomputation reaches" : "bands of rows reach", least);
  if (planned.state_bytes > 0) {
    text += fmt::format(" (state {}, arena {})", planned.state_bytes, planned.arena_bytes);
  }
  const Peak peak = peak_of(planned);
  text += fmt::format("\nmost is live in {}, at {}: {} bytes", peak.entry, peak.loc.describe(),
                      peak.bytes);
  for (size_t i = 0; i < peak.live.size() && i < kMost; ++i) {
    const loop::Buffer& buffer = planned.buffer(peak.live[i]);
    text += fmt::format("{} {} bytes {} of {}", i == 0 ? "\nthese are" : ";",
                        planned.storage_bytes(peak.live[i]),
                        to_string(TensorType{buffer.element, buffer.shape}), buffer.loc.describe());
  }
  if (peak.live.size() > kMost) text += fmt::format("; and {} more", peak.live.size() - kMost);
  throw DoesNotFit(text, least);
}

/// The program with values computed again, towards a goal for its arena.
struct Attempt {
  Program program, planned;
  Recomputation done;
};

class Fitting {
 public:
  Fitting(const Program& program, const TargetInfo& target) : program_(program), target_(target) {}

  /// As the passes behind do it; what runs in pieces overlaps nothing.
  Program plan(const Program& p) const {
    return plan_memory(order_steps(parallelize(p, target_), target_), target_);
  }

  Attempt towards(int64_t goal) const {
    Attempt attempt;
    attempt.program = rematerialize(program_, target_, {goal, 1e6}, &attempt.done);
    attempt.planned = plan(attempt.program);
    return attempt;
  }

  /// Fits `budget`, if aiming at it or a little lower does.
  std::optional<Attempt> within(int64_t budget) const {
    // The plan may need more than what is live: aim lower by what is missing.
    int64_t goal = budget;
    for (int attempt = 0; attempt < kMaxAttempts && goal >= 0; ++attempt) {
      Attempt tried = towards(goal);
      if (tried.planned.arena_bytes <= budget) return tried;
      const bool reached = tried.planned.arena_bound <= goal;
      if (!reached && attempt > 0) break;
      goal -= std::max<int64_t>(tried.planned.arena_bytes - budget, budget / 64 + 1);
    }
    return std::nullopt;
  }

  /// The least that is found below `most`: a goal out of reach leads nowhere near it, so the way
  /// there goes by goals that are reached. It is the same way for every budget, which only ends
  /// it, so that the least that is named for one that cannot be met is met when asked for.
  Attempt least(int64_t budget, int64_t most) const {
    Attempt best = towards(most);
    for (int64_t low = 0, high = most; high - low > most / 64 + 1;) {
      const int64_t goal = low + (high - low) / 2;
      Attempt tried = towards(goal);
      const int64_t reached = tried.planned.arena_bytes;
      if (reached < best.planned.arena_bytes) best = std::move(tried);
      if (best.planned.arena_bytes <= budget) break;
      (reached <= goal + goal / 64 ? high : low) = goal;
    }
    return best;
  }

 private:
  const Program& program_;
  const TargetInfo& target_;
};

}  // namespace

Program fit_memory(const Program& program, const TargetInfo& target, int64_t ram,
                   std::string* summary) {
  const Fitting fitting(program, target);
  const Program before = fitting.plan(program);
  const int64_t budget = ram - before.state_bytes;
  if (before.arena_bytes <= budget) {
    if (summary != nullptr) *summary = "recomputes nothing";
    return program;
  }
  std::optional<Attempt> fits = fitting.within(budget);
  if (!fits) fits = fitting.least(budget, before.arena_bytes);
  if (fits->planned.arena_bytes > budget) fail(fits->planned, ram);
  if (summary != nullptr) {
    *summary = fmt::format("{}, arena {} → {} bytes", fits->done.to_string(), before.arena_bytes,
                           fits->planned.arena_bytes);
  }
  return fits->program;
}

}  // namespace backcast
