// Estimates that bands_for_memory goes by are held against planned programs.
#include "passes/plan/fit_bands.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "ir/loop/code_size.h"
#include "ir/loop/step_access.h"
#include "passes/lower/row_bands.h"
#include "passes/plan/bands_for_memory.h"
#include "passes/plan/plan_memory.h"
#include "passes/schedule/drop_unused.h"
#include "passes/schedule/parallelize.h"
#include "passes/schedule/schedule.h"

namespace backcast {
namespace {

using loop::Program;

constexpr int kMaxAttempts = 6;

// Unasked, a byte of RAM is worth so many bytes of flash, of which microcontrollers have four to
// eight times as much.
constexpr int64_t kRamWorth = 2;
// And bands may take this share of the time, by the model.
constexpr double kShareOfTime = 0.04;
// Goals are this share apart.
constexpr double kGoalFalls = 0.8;
constexpr int kMaxMisses = 3;
constexpr int64_t kBytesPerInstruction = 4;

bool equal(const std::vector<BandChoice>& a, const std::vector<BandChoice>& b) {
  return std::equal(
      a.begin(), a.end(), b.begin(), b.end(), [](const BandChoice& x, const BandChoice& y) {
        return x.first == y.first && x.last == y.last && x.height == y.height && x.entry == y.entry;
      });
}

std::string describe(const Program& program, const BandsForMemory& bands, int64_t before,
                     int64_t after) {
  size_t all = 0;
  for (const loop::EntryPoint& entry : program.entries) all += entry.steps.size();
  return fmt::format("computes {} of {} steps in bands, which copy {} bytes, arena {} → {} bytes",
                     bands.banded, all, bands.kept, before, after);
}

/// A program as it will be emitted, more or less.
class Outcome {
 public:
  Outcome(const Program& program, const TargetInfo& target, const ScheduleOptions& schedules)
      : scheduled_(schedule(program, target, schedules)),
        planned_(plan_memory(parallelize(scheduled_, target), target)) {}

  int64_t arena() const { return planned_.arena_bytes; }
  int64_t state() const { return planned_.state_bytes; }
  int64_t flash() const {
    const Program emitted = drop_unused(share_kernels(scheduled_));
    int64_t bytes = loop::code_size(emitted) * kBytesPerInstruction;
    for (size_t id = 0; id < emitted.buffers.size(); ++id) {
      const loop::Buffer& buffer = emitted.buffers[id];
      if (buffer.kind != loop::BufferClass::constant || buffer.view_of >= 0) continue;
      bytes += emitted.storage_bytes(static_cast<loop::BufferId>(id));
    }
    return bytes;
  }

 private:
  Program scheduled_, planned_;
};

double cycles_of(const Program& program, const BandCosts& costs) {
  double macs = 0;
  for (const auto& [name, kernel] : program.kernels) macs += static_cast<double>(kernel.macs);
  return macs / costs.macs_per_cycle;
}

}  // namespace

Program fit_bands(const Program& program, const TargetInfo& target, int64_t ram,
                  const ScheduleOptions& schedules, std::string* summary) {
  Program best = row_bands(program, target);
  if (loop::writes_state(program)) return best;
  const Outcome whole(best, target, schedules);
  const int64_t budget = ram - whole.state();
  if (whole.arena() <= budget) return best;
  int64_t least = whole.arena();
  std::vector<BandChoice> before;
  int64_t goal = budget;
  for (int attempt = 0; attempt < kMaxAttempts && goal > 0; ++attempt) {
    BandsForMemory bands = bands_for_memory(program, band_costs(target), goal);
    if (bands.choices.empty()) break;
    if (equal(bands.choices, before)) {
      goal -= budget / 16 + 1;
      continue;
    }
    const Program tried = *band_steps(program, bands.choices);
    const int64_t arena = Outcome(tried, target, schedules).arena();
    if (arena < least) {
      best = tried;
      least = arena;
      if (summary != nullptr) *summary = describe(program, bands, whole.arena(), arena);
    }
    if (arena <= budget) break;
    goal -= std::max<int64_t>(arena - budget, budget / 64 + 1);
    before = std::move(bands.choices);
  }
  return best;
}

Program worthwhile_bands(const Program& program, const TargetInfo& target,
                         const ScheduleOptions& schedules, std::string* summary) {
  if (!target.is_microcontroller() || loop::writes_state(program)) return program;
  const BandCosts costs = band_costs(target);
  const double most_cycles = kShareOfTime * cycles_of(program, costs);
  const Outcome whole(program, target, schedules);
  const auto price = [](const Outcome& outcome) {
    return outcome.arena() * kRamWorth + outcome.flash();
  };
  Program best = program;
  int64_t least = price(whole);
  std::vector<BandChoice> before;
  int misses = 0;
  for (double goal = static_cast<double>(whole.arena()); goal >= 1 && misses < kMaxMisses;
       goal *= kGoalFalls) {
    BandsForMemory bands = bands_for_memory(program, costs, static_cast<int64_t>(goal));
    if (bands.choices.empty() || equal(bands.choices, before)) continue;
    if (bands.cycles > most_cycles) break;
    const Program tried = *band_steps(program, bands.choices);
    const Outcome outcome(tried, target, schedules);
    ++misses;
    if (price(outcome) < least) {
      misses = 0;
      best = tried;
      least = price(outcome);
      if (summary != nullptr) *summary = describe(program, bands, whole.arena(), outcome.arena());
    }
    before = std::move(bands.choices);
  }
  return best;
}

}  // namespace backcast
