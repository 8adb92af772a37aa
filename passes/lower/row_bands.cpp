// See row_bands.h. Which steps become regions, and how high their bands are, is what saves most
// cycles by a model of two levels of memory.
#include "passes/lower/row_bands.h"

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "ir/loop/liveness.h"
#include "ir/loop/step_access.h"
#include "passes/lower/write_bands.h"

namespace backcast {
namespace {

using loop::AccessMode;
using loop::Kernel;
using loop::Program;
using loop::Step;

/// Bands found for some steps.
struct Bands {
  size_t first = 0;
  BandHeight height;
  double gain = 0;  // cycles
};

class Choosing {
 public:
  Choosing(const Program& program, const std::vector<Step>& steps, const BandCosts& costs)
      : program_(program), steps_(steps), costs_(costs), regions_(program, steps, false) {}

  /// Per step: the bands that end with it where that is part of the best choice for all.
  std::vector<std::optional<Bands>> run() const {
    std::vector<double> reached{0};  // by the steps before
    std::vector<std::optional<Bands>> best(steps_.size());
    for (size_t last = 0; last < steps_.size(); ++last) {
      reached.push_back(reached[last]);
      if (!regions_.fits(last) || !is_far(steps_[last], AccessMode::read)) continue;
      for (size_t first = last; first-- > 0 && regions_.fits(first);) {
        if (last - first >= kMaxBandSteps) break;
        if (!is_far(steps_[first], AccessMode::write)) continue;
        const std::optional<RowRegion> region = regions_.region(first, last);
        if (!region || traffic(*region) == 0) continue;
        const std::optional<Bands> bands = best_height(*region);
        if (!bands || reached[first] + bands->gain <= reached[last + 1]) continue;
        reached[last + 1] = reached[first] + bands->gain;
        best[last] = bands;
      }
    }
    // From the end: what a region covers belongs to it.
    for (size_t last = steps_.size(); last-- > 0;) {
      if (!best[last]) continue;
      for (size_t s = best[last]->first; s < last; ++s) best[s].reset();
      last = best[last]->first;
    }
    return best;
  }

 private:
  /// A kernel that hands on half of what stays near pushes out most of it.
  bool is_far(int64_t bytes) const { return bytes > costs_.near_bytes / 2; }

  bool is_far(const Step& step, AccessMode mode) const {
    const Kernel& kernel = program_.kernels.at(step.kernel);
    for (size_t i = 0; i < step.buffers.size(); ++i) {
      if (kernel.buffers[i].mode == mode && is_far(program_.storage_bytes(step.buffers[i]))) {
        return true;
      }
    }
    return false;
  }

  /// Cycles that no longer pass while tensors come from afar. Half of a kernel's arithmetic hides
  /// as much of that.
  double traffic(const RowRegion& region) const {
    std::vector<int64_t> bytes(region.calls.size(), 0);
    for (const BandTensor& tensor : region.tensors) {
      if (!is_far(tensor.bytes())) continue;
      bytes[tensor.producer] += tensor.bytes();
      for (const BandTensor::Reader& reader : tensor.readers) bytes[reader.step] += tensor.bytes();
    }
    const double per_byte = 1 / costs_.far_bytes_per_cycle - 1 / costs_.near_bytes_per_cycle;
    double cycles = 0;
    for (size_t s = 0; s < bytes.size(); ++s) {
      const Kernel& kernel = program_.kernels.at(region.calls[s]->kernel);
      const double hidden = static_cast<double>(kernel.macs) / costs_.macs_per_cycle / 2;
      cycles += std::max(static_cast<double>(bytes[s]) * per_byte - hidden, 0.0);
    }
    return cycles;
  }

  /// Cycles that bands of this form gain; nothing when they do not stay near.
  std::optional<double> gain(const RowRegion& region, const RowTrips& trips) const {
    const BandWork work = work_of(program_, region, trips);
    if ((work.windows + work.parts + work.whole) * 4 > costs_.near_bytes * 3) return std::nullopt;
    const double calls = static_cast<double>(work.calls);
    const double near = static_cast<double>(work.whole * (trips.trips - 1) + 2 * work.kept);
    return traffic(region) - near / costs_.near_bytes_per_cycle - calls * costs_.call_cycles;
  }

  /// The height of bands that gains most; nothing when none gains.
  std::optional<Bands> best_height(const RowRegion& region) const {
    std::optional<Bands> best;
    for (const BandHeight height : band_heights(region)) {
      const std::optional<RowTrips> found = trips_of(region, height);
      if (!found) continue;
      const std::optional<double> cycles = gain(region, *found);
      if (cycles && *cycles > (best ? best->gain : 0)) best = Bands{region.first, height, *cycles};
    }
    return best;
  }

  const Program& program_;
  const std::vector<Step>& steps_;
  const BandCosts costs_;
  const RowRegions regions_;
};

/// Writes choices into lists of steps; the bands' kernels and buffers into another program.
class Banding {
 public:
  Banding(const Program& program, const std::vector<BandChoice>& choices, Borders borders,
          Program& result)
      : program_(program), borders_(borders), result_(result) {
    const std::vector<StepList> lists = step_lists(program);
    for (const BandChoice& choice : choices) {
      chosen_[lists[choice.list].steps][choice.first] = &choice;
    }
  }

  /// Whether all steps could run in such bands.
  bool fits() const { return fits_; }

  /// A list of the program's.
  std::vector<Step> written(const std::vector<Step>& given) {
    const auto here = chosen_.find(&given);
    std::vector<Step> steps;
    for (size_t s = 0; s < given.size(); ++s) {
      if (here != chosen_.end() && here->second.contains(s)) {
        const BandChoice& choice = *here->second.at(s);
        add_bands(given, choice, steps);
        s = choice.last;
        continue;
      }
      steps.push_back(given[s]);
      steps.back().body = written(given[s].body);
      steps.back().otherwise = written(given[s].otherwise);
    }
    return steps;
  }

 private:
  void add_bands(const std::vector<Step>& given, const BandChoice& choice,
                 std::vector<Step>& steps) {
    const RowRegions& regions = regions_.try_emplace(&given, program_, given).first->second;
    const std::optional<RowRegion> region = regions.region(choice.first, choice.last);
    const std::optional<RowTrips> trips = region ? trips_of(*region, choice.height) : std::nullopt;
    fits_ = fits_ && trips;
    if (!fits_) return;
    for (Step& step : write_bands(result_, *region, *trips, borders_)) {
      steps.push_back(std::move(step));
    }
  }

  const Program& program_;
  const Borders borders_;
  Program& result_;
  std::map<const std::vector<Step>*, std::map<size_t, const BandChoice*>> chosen_;  // by first step
  std::map<const std::vector<Step>*, RowRegions> regions_;
  bool fits_ = true;
};

}  // namespace

BandCosts band_costs(const TargetInfo& target) {
  // Second caches give 30 to 60 bytes per cycle, what lies behind them 2 to 10. A call begins and
  // ends loops, and its last tiles are small ones.
  BandCosts costs;
  costs.near_bytes = target.l2_bytes;
  costs.near_bytes_per_cycle = target.vector_bits > 0 ? 48 : 1;
  costs.far_bytes_per_cycle = 6;
  costs.call_cycles = 500;
  costs.macs_per_cycle = std::max(target.vector_lanes(4) * target.fma_units, 1);
  if (target.is_microcontroller()) {
    costs.near_bytes_per_cycle = target.vector_bits > 0 ? 8 : 2;
    costs.call_cycles = 300;
  }
  return costs;
}

Borders borders_for(const TargetInfo& target) {
  return target.is_microcontroller() ? Borders::shared : Borders::apart;
}

std::vector<StepList> step_lists(const Program& program) {
  std::vector<StepList> lists;
  const std::function<void(StepList)> add = [&](StepList list) {
    lists.push_back(list);
    for (const Step& step : *list.steps) {
      ++list.number;
      for (const std::vector<Step>* held : {&step.body, &step.otherwise}) {
        if (!held->empty()) add({list.entry, held, list.number});
        for (const Step& inner : *held) list.number += loop::count_steps(inner);
      }
    }
  };
  for (size_t e = 0; e < program.entries.size(); ++e) add({e, &program.entries[e].steps, 0});
  return lists;
}

Program row_bands(const Program& program, const BandCosts& costs, Borders borders) {
  if (costs.near_bytes == 0) return program;
  std::vector<BandChoice> choices;
  const std::vector<StepList> lists = step_lists(program);
  for (size_t l = 0; l < lists.size(); ++l) {
    const std::vector<std::optional<Bands>> best = Choosing(program, *lists[l].steps, costs).run();
    for (size_t last = 0; last < best.size(); ++last) {
      if (best[last]) choices.push_back({best[last]->first, last, best[last]->height, l});
    }
  }
  return *band_steps(program, choices, borders);
}

Program row_bands(const Program& program, const TargetInfo& target) {
  return row_bands(program, band_costs(target), borders_for(target));
}

std::optional<Program> band_steps(const Program& program, const std::vector<BandChoice>& choices,
                                  Borders borders) {
  Program result = program;
  Banding banding(program, choices, borders, result);
  for (size_t e = 0; e < program.entries.size(); ++e) {
    result.entries[e].steps = banding.written(program.entries[e].steps);
  }
  if (!banding.fits()) return std::nullopt;
  loop::drop_uncalled(result);
  return result;
}

}  // namespace backcast
