// Estimates that bands_for_memory goes by are held against planned programs.
#include "passes/plan/fit_bands.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "ir/loop/instruction_counts.h"
#include "ir/loop/step_access.h"
#include "passes/lower/loop_bands.h"
#include "passes/lower/row_bands.h"
#include "passes/plan/bands_for_memory.h"

namespace backcast {
namespace {

using loop::Program;

constexpr int kMaxAttempts = 6;

// Unasked, a byte of RAM is worth so many bytes of flash, of which microcontrollers have four to
// eight times as much.
constexpr int64_t kRamWorth = 2;
// And bands may add this share to the executed instructions.
constexpr double kShareOfTime = 0.03;
// And fewer bytes of RAM than this are worth nothing.
constexpr int64_t kFewBytes = 256;
// Goals are this share apart; so many in a row that gain nothing are enough.
constexpr double kGoalFalls = 0.8;
constexpr int kMaxMisses = 3;
constexpr int64_t kBytesPerInstruction = 4;

std::string describe(const Program& program, const BandsForMemory& bands, int64_t before,
                     int64_t after) {
  size_t all = 0;
  for (const StepList& list : step_lists(program)) all += list.steps->size();
  return fmt::format("computes {} of {} steps in bands, which copy {} bytes, arena {} → {} bytes",
                     bands.banded, all, bands.kept, before, after);
}

/// The same for rows of loops, before bands of other steps are told.
std::string describe_loops(TripsTogether together, int64_t before, int64_t after) {
  return fmt::format("computes what loops read {} at a time, arena {} → {} bytes",
                     together == TripsTogether::one ? "one trip" : "a few trips", before, after);
}

constexpr TripsTogether kTrips[] = {TripsTogether::as_tiles, TripsTogether::one};

void tell(std::string* summary, const std::string& loops, const std::string& bands) {
  if (summary == nullptr) return;
  *summary = loops.empty() || bands.empty() ? loops + bands : loops + "; " + bands;
}

/// What a planned program takes: flash, and RAM as so much flash; instructions per run.
struct Outcome {
  int64_t price = 0, arena = 0;
  double executed = 0;
};

Outcome outcome_of(const Program& planned) {
  const loop::InstructionCounts counts = loop::instruction_counts(planned);
  Outcome outcome{counts.code * kBytesPerInstruction + planned.arena_bytes * kRamWorth,
                  planned.arena_bytes, static_cast<double>(counts.executed)};
  for (size_t id = 0; id < planned.buffers.size(); ++id) {
    const loop::Buffer& buffer = planned.buffers[id];
    if (buffer.kind != loop::BufferClass::constant || buffer.view_of >= 0) continue;
    outcome.price += planned.storage_bytes(static_cast<loop::BufferId>(id));
  }
  return outcome;
}

}  // namespace

Program fit_bands(const Program& program, const TargetInfo& target, int64_t ram,
                  const Planned& planned, std::string* summary) {
  Program best = row_bands(program, target);
  if (loop::writes_state(program) && !target.is_microcontroller()) return best;
  const Program whole = planned(best);
  const int64_t budget = ram - whole.state_bytes;
  if (whole.arena_bytes <= budget) return best;
  int64_t least = whole.arena_bytes;
  Program start = program;
  std::string loops;
  for (const TripsTogether together : kTrips) {
    std::optional<Program> tried = least > budget ? loop_bands(program, together) : std::nullopt;
    const int64_t arena = tried ? planned(*tried).arena_bytes : least;
    if (arena >= least) continue;
    loops = describe_loops(together, whole.arena_bytes, arena);
    tell(summary, loops, "");
    best = start = *std::move(tried);
    least = arena;
  }
  std::vector<BandChoice> before;
  /// The arena that bands chosen for a goal lead to; nothing where they are those of the last one.
  const auto aim_at = [&](int64_t goal) -> std::optional<int64_t> {
    BandsForMemory bands = bands_for_memory(start, band_costs(target), goal);
    if (bands.choices.empty() || bands.choices == before) return std::nullopt;
    const Program tried = *band_steps(start, bands.choices, borders_for(target));
    const int64_t arena = planned(tried).arena_bytes;
    if (arena < least) {
      best = tried;
      least = arena;
      tell(summary, loops, describe(start, bands, whole.arena_bytes, arena));
    }
    before = std::move(bands.choices);
    return arena;
  };
  // Just below the budget first, so that no more runs in bands than it takes.
  int64_t goal = std::max<int64_t>(budget, 1);
  for (int attempt = 0; attempt < kMaxAttempts && goal > 0 && least > budget; ++attempt) {
    const std::optional<int64_t> arena = aim_at(goal);
    goal -= arena ? std::max<int64_t>(*arena - budget, budget / 64 + 1) : budget / 16 + 1;
  }
  // Estimates may be far off where results overlap: further away then.
  int misses = 0;
  for (double far = kGoalFalls * static_cast<double>(budget);
       far >= 1 && misses < kMaxMisses && least > budget; far *= kGoalFalls) {
    const int64_t former = least;
    aim_at(static_cast<int64_t>(far));
    misses = least < former ? 0 : misses + 1;
  }
  return best;
}

Program worthwhile_bands(const Program& program, const TargetInfo& target,
                         const PlannedBoth& planned, std::string* summary) {
  if (!target.is_microcontroller()) return program;
  const Program whole = planned.again(program);
  const Outcome without = outcome_of(whole);
  // Estimates know no recomputation, of which programs without state have none.
  const int64_t most =
      program.states().empty() ? whole.arena_bytes : planned.once(program).arena_bytes;
  const double most_executed = without.executed * (1 + kShareOfTime);
  Program start = program;
  std::string loops;
  int64_t least = without.price;
  const auto is_worth = [&](const Outcome& outcome) {
    return outcome.executed <= most_executed && outcome.price < least &&
           outcome.arena + kFewBytes <= without.arena;
  };
  for (const TripsTogether together : kTrips) {
    std::optional<Program> tried = loop_bands(program, together);
    if (!tried) break;
    const Program result = planned.again(*tried);
    const Outcome outcome = outcome_of(result);
    if (!is_worth(outcome)) continue;
    loops = describe_loops(together, whole.arena_bytes, result.arena_bytes);
    tell(summary, loops, "");
    start = *std::move(tried);
    least = outcome.price;
  }
  Program best = start;
  std::vector<BandChoice> before;
  int misses = 0;
  for (double goal = static_cast<double>(most); goal >= 1 && misses < kMaxMisses;
       goal *= kGoalFalls) {
    BandsForMemory bands = bands_for_memory(start, band_costs(target), static_cast<int64_t>(goal));
    if (bands.choices == before) continue;
    ++misses;
    const Program tried = *band_steps(start, bands.choices, borders_for(target));
    const Program result = planned.again(tried);
    const Outcome outcome = outcome_of(result);
    if (is_worth(outcome)) {
      misses = 0;
      best = tried;
      least = outcome.price;
      tell(summary, loops, describe(start, bands, whole.arena_bytes, result.arena_bytes));
    }
    before = std::move(bands.choices);
  }
  return best;
}

}  // namespace backcast
