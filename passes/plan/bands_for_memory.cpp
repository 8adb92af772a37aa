#include "passes/plan/bands_for_memory.h"

#include <algorithm>
#include <optional>
#include <set>
#include <tuple>

#include "ir/loop/liveness.h"
#include "ir/loop/step_access.h"
#include "passes/lower/row_trips.h"

namespace backcast {
namespace {

using loop::BufferClass;
using loop::BufferId;
using loop::LiveRange;
using loop::Program;
using loop::Step;

/// What a choice for some steps takes: bytes above the goal first, at the worst step, then at all,
/// since what the plan makes of the worst may be less; then cycles.
struct Price {
  int64_t excess = 0, total = 0;
  double cycles = 0;
  friend bool operator<(const Price& a, const Price& b) {
    return std::tie(a.excess, a.total, a.cycles) < std::tie(b.excess, b.total, b.cycles);
  }
  friend Price operator+(const Price& a, const Price& b) {
    return {std::max(a.excess, b.excess), a.total + b.total, a.cycles + b.cycles};
  }
};

/// One list of steps.
class Fitting {
 public:
  Fitting(const Program& program, const StepList& list, size_t number, const BandCosts& costs)
      : program_(program),
        number_(number),
        steps_(*list.steps),
        costs_(costs),
        regions_(program, steps_),
        ranges_(loop::live_ranges(program, program.entries[list.entry])) {
    int64_t next = list.number;
    for (const Step& step : steps_) {
      first_.push_back(next);
      next += loop::count_steps(step);
    }
    first_.push_back(next);
    for (size_t s = 0; s < steps_.size(); ++s) live_.push_back(live_at(s));
  }

  /// Adds the cheapest bands with which no step takes more than `goal`, or that exceed it least.
  void choose(int64_t goal, BandsForMemory& bands) const {
    const size_t steps = steps_.size();
    std::vector<Price> reached{{}};
    std::vector<std::optional<Found>> best(steps);
    for (size_t last = 0; last < steps; ++last) {
      const int64_t excess = std::max<int64_t>(live_[last] - goal, 0);
      reached.push_back(reached[last] + Price{excess, excess, 0});
      bool over = live_[last] > goal;
      for (size_t first = last; first-- > 0 && last - first < kMaxBandSteps;) {
        if (!regions_.fits(last) || !regions_.fits(first)) break;
        over = over || live_[first] > goal;
        if (!over) continue;
        const std::optional<Found> found = best_bands(first, last, goal);
        if (!found || !(reached[first] + found->price < reached[last + 1])) continue;
        reached[last + 1] = reached[first] + found->price;
        best[last] = found;
      }
    }
    for (size_t end = steps; end > 0;) {
      const std::optional<Found>& found = best[end - 1];
      if (found) {
        bands.choices.push_back(found->choice);
        bands.kept += found->kept;
        bands.banded += found->choice.last - found->choice.first + 1 - found->before;
      }
      end = found ? found->choice.first : end - 1;
    }
  }

 private:
  struct Found {
    BandChoice choice;
    Price price;
    int64_t kept = 0;
    size_t before = 0;  // of these steps, what runs once
  };

  bool lives(BufferId id, size_t first, size_t last) const {
    const LiveRange& range = ranges_[static_cast<size_t>(id)];
    return program_.buffer(id).kind == BufferClass::arena && range.first < first_[last + 1] &&
           range.last >= first_[first];
  }

  /// Bytes live during a step; a result that may take over what ends here counts once.
  int64_t live_at(size_t s) const {
    int64_t bytes = 0;
    for (size_t id = 0; id < ranges_.size(); ++id) {
      const BufferId buffer = static_cast<BufferId>(id);
      if (lives(buffer, s, s)) bytes += program_.storage_bytes(buffer);
    }
    const Step& step = steps_[s];
    if (step.kind != loop::StepKind::call) return bytes;
    std::set<BufferId> taken;
    for (size_t i = 0; i < step.buffers.size(); ++i) {
      for (const size_t j : loop::taken_over_by(program_.kernels.at(step.kernel), i)) {
        const BufferId read = program_.owner(step.buffers[j]), written = step.buffers[i];
        const bool ends = lives(read, s, s) && ranges_[static_cast<size_t>(read)].last == first_[s];
        if (!ends || !lives(written, s, s) || !taken.insert(read).second) continue;
        bytes -= std::min(program_.storage_bytes(read), program_.storage_bytes(written));
        break;
      }
    }
    return bytes;
  }

  std::optional<Found> best_bands(size_t first, size_t last, int64_t goal) const {
    const std::optional<RowRegion> region = regions_.region(first, last);
    if (!region) return std::nullopt;
    int64_t around = 0;
    for (size_t id = 0; id < ranges_.size(); ++id) {
      const BufferId buffer = static_cast<BufferId>(id);
      if (lives(buffer, first, last) && region->tensor(buffer) == nullptr) {
        around += program_.storage_bytes(buffer);
      }
    }
    std::optional<Found> best;
    for (const BandHeight height : band_heights(*region)) {
      const std::optional<RowTrips> trips = trips_of(*region, height);
      if (!trips) continue;
      const BandWork work = work_of(program_, *region, *trips);
      const int64_t bytes = around + windows(*region, *trips) + work.sums;
      const int64_t excess = std::max<int64_t>(bytes - goal, 0);
      const Price price{excess, excess,
                        static_cast<double>(2 * work.kept) / costs_.near_bytes_per_cycle +
                            static_cast<double>(work.calls) * costs_.call_cycles};
      if (!best || price < best->price) {
        best = Found{{first, last, height, number_}, price, work.kept, region->before.size()};
      }
    }
    return best;
  }

  /// Windows that keep rows live all the time, others while a trip needs them.
  static int64_t windows(const RowRegion& region, const RowTrips& trips) {
    int64_t lasting = 0, most = 0;
    const auto bytes = [&](const BandTensor& tensor) {
      return trips.capacity[tensor.producer] * tensor.row_bytes;
    };
    for (const BandTensor& tensor : region.tensors) {
      if (trips.keeps_rows(tensor.producer)) lasting += bytes(tensor);
    }
    for (size_t s = 0; s < region.calls.size(); ++s) {
      int64_t passing = 0;
      for (const BandTensor& tensor : region.tensors) {
        if (trips.keeps_rows(tensor.producer) || tensor.producer > s) continue;
        if (tensor.readers.back().step >= s) passing += bytes(tensor);
      }
      most = std::max(most, passing);
    }
    return lasting + most;
  }

  const Program& program_;
  const size_t number_;  // of the list
  const std::vector<Step>& steps_;
  const BandCosts costs_;
  const RowRegions regions_;
  const std::vector<LiveRange> ranges_;  // by owner
  std::vector<int64_t> first_;           // per step: its number in plans
  std::vector<int64_t> live_;            // per step: bytes
};

}  // namespace

BandsForMemory bands_for_memory(const Program& program, const BandCosts& costs, int64_t goal) {
  BandsForMemory bands;
  const std::vector<StepList> lists = step_lists(program);
  for (size_t l = 0; l < lists.size(); ++l)
    Fitting(program, lists[l], l, costs).choose(goal, bands);
  return bands;
}

}  // namespace backcast
