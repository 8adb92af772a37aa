#include "passes/plan/fit_memory.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/loop/liveness.h"
#include "ir/loop/step_access.h"
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

Peak peak_of(const Program& program) {
  Peak peak;
  for (const loop::EntryPoint& entry : program.entries) {
    const std::vector<loop::LiveRange> ranges = loop::live_ranges(program, entry);
    const std::vector<const loop::Step*> steps = loop::flat_steps(entry.steps);
    for (size_t s = 0; s < steps.size(); ++s) {
      Peak here{entry.name, steps[s]->loc, 0, {}};
      for (size_t id = 0; id < ranges.size(); ++id) {
        const BufferId buffer = static_cast<BufferId>(id);
        if (program.buffer(buffer).kind != BufferClass::arena) continue;
        const int64_t at = static_cast<int64_t>(s);
        if (ranges[id].first > at || ranges[id].last < at) continue;
        here.bytes += program.storage_bytes(buffer);
        here.live.push_back(buffer);
      }
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
  std::string text = fmt::format("--ram {}: the least that {} is {} bytes", ram,
                                 trains ? "recomputation reaches" : "bands of rows reach",
                                 planned.arena_bytes + planned.state_bytes);
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
  throw DoesNotFit(text);
}

}  // namespace

Program fit_memory(const Program& program, const TargetInfo& target, int64_t ram,
                   std::string* summary) {
  // What runs in pieces overlaps nothing.
  const auto plan = [&](const Program& p) { return plan_memory(parallelize(p, target), target); };
  const Program before = plan(program);
  const int64_t budget = ram - before.state_bytes;
  const auto fits = [&](const Program& planned) { return planned.arena_bytes <= budget; };
  if (fits(before)) {
    if (summary != nullptr) *summary = "recomputes nothing";
    return program;
  }
  Program least = before;
  // The plan may need more than what is live: aim lower by what is missing.
  int64_t goal = budget;
  for (int attempt = 0; attempt < kMaxAttempts && goal >= 0; ++attempt) {
    Recomputation done;
    Program tried = rematerialize(program, target, {goal, 1e6}, &done);
    Program planned = plan(tried);
    if (fits(planned)) {
      if (summary != nullptr) {
        *summary = fmt::format("{}, arena {} → {} bytes", done.to_string(), before.arena_bytes,
                               planned.arena_bytes);
      }
      return tried;
    }
    const bool reached = planned.arena_bound <= goal;
    goal -= std::max<int64_t>(planned.arena_bytes - budget, budget / 64 + 1);
    if (planned.arena_bytes < least.arena_bytes) least = std::move(planned);
    if (!reached && attempt > 0) break;
  }
  fail(least, ram);
}

}  // namespace backcast
