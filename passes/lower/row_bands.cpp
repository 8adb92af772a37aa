// See row_bands.h. Which steps become regions, and how high their bands are, is what saves most
// cycles by a model of two levels of memory.
#include "passes/lower/row_bands.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "ir/loop/liveness.h"
#include "ir/loop/step_access.h"
#include "passes/lower/row_region.h"
#include "passes/lower/write_bands.h"

namespace backcast {
namespace {

using loop::AccessMode;
using loop::BufferClass;
using loop::BufferId;
using loop::Kernel;
using loop::Program;
using loop::Step;
using loop::StepKind;

constexpr size_t kMaxSteps = 16;   // of a region
constexpr int64_t kMaxTrips = 64;  // over one

/// Bands found for some steps.
struct Bands {
  size_t first = 0;
  int64_t height = 0;
  double gain = 0;  // cycles
};

class Choosing {
 public:
  explicit Choosing(const Program& program, const BandCosts& costs = {})
      : costs_(costs), result_(program) {}

  Program run() {
    if (costs_.near_bytes == 0) return std::move(result_);
    for (loop::EntryPoint& entry : result_.entries) {
      find_kernels(entry);
      rewrite(entry, choose(entry));
    }
    loop::drop_uncalled(result_);
    return std::move(result_);
  }

  std::optional<Program> run(const BandChoice& choice) {
    loop::EntryPoint& entry = result_.entries.front();
    find_kernels(entry);
    const std::optional<RowRegion> region = region_of(entry, choice.first, choice.last);
    if (!region || !trips_of(*region, choice.height)) return std::nullopt;
    std::vector<std::optional<Bands>> chosen(entry.steps.size());
    chosen[choice.last] = Bands{choice.first, choice.height, 0};
    rewrite(entry, chosen);
    loop::drop_uncalled(result_);
    return std::move(result_);
  }

 private:
  // ---- what can be a region

  void find_kernels(const loop::EntryPoint& entry) {
    kernels_.clear();
    for (const Step& step : entry.steps) {
      const bool call = step.kind == StepKind::call;
      kernels_.push_back(call ? match_rows(result_.kernels.at(step.kernel)) : std::nullopt);
    }
    users_.assign(result_.buffers.size(), {});
    for (const loop::EntryPoint& any : result_.entries) {
      for (size_t s = 0; s < any.steps.size(); ++s) {
        // Steps of other entry points and steps within steps lie outside of every region.
        const bool inside = any.name == entry.name && any.steps[s].kind == StepKind::call;
        loop::for_each_buffer(any.steps[s], [&](BufferId id) {
          users_[static_cast<size_t>(result_.owner(id))].insert(inside ? s : SIZE_MAX);
        });
      }
    }
  }

  /// The steps from `first` to `last` as a region, when what all but the last write is used by them
  /// alone, and by rows.
  std::optional<RowRegion> region_of(const loop::EntryPoint& entry, size_t first,
                                     size_t last) const {
    RowRegion region{first, last, {}, {}, {}};
    std::set<BufferId> written;
    for (size_t s = first; s <= last; ++s) {
      if (!kernels_[s]) return std::nullopt;
      const Step& step = entry.steps[s];
      region.calls.push_back(&step);
      region.kernels.push_back(&*kernels_[s]);
      for (const RowAccess& access : kernels_[s]->writes) {
        const BufferId id = step.buffers[access.param];
        if (!written.insert(result_.owner(id)).second) return std::nullopt;
        if (s == last) {
          if (entry.optional_outputs.contains(result_.owner(id))) return std::nullopt;
          continue;
        }
        if (!is_inside(id, first, last)) return std::nullopt;
        region.tensors.push_back(band_tensor(step, s - first, access));
      }
    }
    for (size_t s = 0; s < region.calls.size(); ++s) {
      if (!add_readers(region, s, written)) return std::nullopt;
    }
    for (const BandTensor& tensor : region.tensors) {
      if (tensor.readers.empty()) return std::nullopt;
    }
    return region;
  }

  bool is_inside(BufferId id, size_t first, size_t last) const {
    const loop::Buffer& buffer = result_.buffer(id);
    const std::set<size_t>& users = users_[static_cast<size_t>(id)];
    return buffer.kind == BufferClass::arena && buffer.view_of < 0 && *users.begin() >= first &&
           *users.rbegin() <= last;
  }

  BandTensor band_tensor(const Step& step, size_t producer, const RowAccess& access) const {
    BandTensor tensor;
    tensor.id = step.buffers[access.param];
    tensor.producer = producer;
    tensor.rows = access.extent;
    tensor.row_bytes = result_.storage_bytes(tensor.id) / tensor.rows;
    tensor.row_elements = tensor.row_bytes / byte_size(result_.buffer(tensor.id).element);
    return tensor;
  }

  /// What step s of the region reads of band tensors; false when it needs all of one at once, sees
  /// it in another shape, or reads what the region writes in any other way.
  bool add_readers(RowRegion& region, size_t s, const std::set<BufferId>& written) const {
    const Step& step = *region.calls[s];
    const Kernel& kernel = result_.kernels.at(step.kernel);
    for (const size_t param : region.kernels[s]->whole) {
      if (written.contains(result_.owner(step.buffers[param]))) return false;
    }
    for (const RowAccess& access : region.kernels[s]->reads) {
      const BufferId id = step.buffers[access.param];
      if (!written.contains(result_.owner(id))) continue;
      const auto tensor =
          std::find_if(region.tensors.begin(), region.tensors.end(),
                       [&](const BandTensor& candidate) { return candidate.id == id; });
      if (tensor == region.tensors.end() || tensor->producer >= s) return false;
      const Dims& shape = kernel.buffers[access.param].shape;
      if (shape != result_.buffer(id).shape || access.dimension != *outermost(shape)) return false;
      tensor->readers.push_back({s, access});
    }
    for (const RowAccess& access : region.kernels[s]->writes) {
      const BufferId id = step.buffers[access.param];
      if (region.tensor(id) && kernel.buffers[access.param].shape != result_.buffer(id).shape) {
        return false;
      }
    }
    return true;
  }

  // ---- what a region gains

  bool is_far(int64_t bytes) const { return bytes > costs_.near_bytes; }

  bool is_far(const Step& step, AccessMode mode) const {
    const Kernel& kernel = result_.kernels.at(step.kernel);
    for (size_t i = 0; i < step.buffers.size(); ++i) {
      if (kernel.buffers[i].mode == mode && is_far(result_.storage_bytes(step.buffers[i]))) {
        return true;
      }
    }
    return false;
  }

  /// Cycles that no longer pass while tensors come from afar.
  double traffic(const RowRegion& region) const {
    double bytes = 0;
    for (const BandTensor& tensor : region.tensors) {
      if (!is_far(tensor.bytes())) continue;
      bytes +=
          static_cast<double>(tensor.bytes()) * (1 + static_cast<double>(tensor.readers.size()));
    }
    return bytes * (1 / costs_.far_bytes_per_cycle - 1 / costs_.near_bytes_per_cycle);
  }

  /// Cycles that bands of this form gain; nothing when they do not stay near.
  std::optional<double> gain(const RowRegion& region, const RowTrips& trips) const {
    int64_t used = 0, again = 0, moved = 0;
    for (const BandTensor& tensor : region.tensors) {
      used += trips.capacity[tensor.producer] * tensor.row_bytes;
      const std::vector<int64_t>& kept = trips.kept[tensor.producer];
      for (const int64_t rows : kept) moved += 2 * rows * tensor.row_bytes;
    }
    for (size_t s = 0; s < region.calls.size(); ++s) {
      const Step& step = *region.calls[s];
      for (const size_t param : region.kernels[s]->whole) {
        again += result_.storage_bytes(step.buffers[param]);
      }
      for (const std::vector<RowAccess>* list :
           {&region.kernels[s]->reads, &region.kernels[s]->writes}) {
        for (const RowAccess& access : *list) {
          const BufferId id = step.buffers[access.param];
          if (region.tensor(id) == nullptr) used += result_.storage_bytes(id) / trips.trips;
        }
      }
    }
    if ((used + again) * 4 > costs_.near_bytes * 3) return std::nullopt;
    const double calls =
        static_cast<double>(trips.trips) * static_cast<double>(region.calls.size());
    const double near = static_cast<double>(again * (trips.trips - 1) + moved);
    return traffic(region) - near / costs_.near_bytes_per_cycle - calls * costs_.call_cycles;
  }

  /// The height of bands that gains most; nothing when none gains.
  std::optional<Bands> best_height(const RowRegion& region) const {
    std::optional<Bands> best;
    const int64_t rows = region.kernels.back()->rows;
    int64_t last = 0;
    for (int64_t trips = 2; trips <= std::min(rows, kMaxTrips); ++trips) {
      const int64_t height = (rows + trips - 1) / trips;
      if (height == std::exchange(last, height)) continue;
      const std::optional<RowTrips> found = trips_of(region, height);
      if (!found) continue;
      const std::optional<double> cycles = gain(region, *found);
      if (cycles && *cycles > (best ? best->gain : 0)) best = Bands{region.first, height, *cycles};
    }
    return best;
  }

  /// Per step: the bands that end with it where that is part of the best choice for all.
  std::vector<std::optional<Bands>> choose(const loop::EntryPoint& entry) const {
    std::vector<double> reached{0};  // by the steps before
    std::vector<std::optional<Bands>> best(entry.steps.size());
    for (size_t last = 0; last < entry.steps.size(); ++last) {
      reached.push_back(reached[last]);
      if (!kernels_[last] || !is_far(entry.steps[last], AccessMode::read)) continue;
      for (size_t first = last; first-- > 0 && kernels_[first] && last - first < kMaxSteps;) {
        if (!is_far(entry.steps[first], AccessMode::write)) continue;
        const std::optional<RowRegion> region = region_of(entry, first, last);
        if (!region || traffic(*region) == 0) continue;
        const std::optional<Bands> bands = best_height(*region);
        if (!bands || reached[first] + bands->gain <= reached[last + 1]) continue;
        reached[last + 1] = reached[first] + bands->gain;
        best[last] = bands;
      }
    }
    // From the end: what a region covers belongs to it.
    for (size_t last = entry.steps.size(); last-- > 0;) {
      if (!best[last]) continue;
      for (size_t s = best[last]->first; s < last; ++s) best[s].reset();
      last = best[last]->first;
    }
    return best;
  }

  void rewrite(loop::EntryPoint& entry, const std::vector<std::optional<Bands>>& chosen) {
    const std::vector<Step> before = entry.steps;
    loop::EntryPoint old = entry;
    std::vector<Step> after;
    for (size_t s = 0; s < before.size(); ++s) {
      after.push_back(before[s]);
      if (!chosen[s]) continue;
      const RowRegion region = *region_of(old, chosen[s]->first, s);
      after.resize(after.size() - region.calls.size());
      const RowTrips trips = *trips_of(region, chosen[s]->height);
      for (Step& step : write_bands(result_, region, trips)) after.push_back(std::move(step));
    }
    entry.steps = std::move(after);
  }

  BandCosts costs_;
  Program result_;
  std::vector<std::optional<RowKernel>> kernels_;  // per step of the entry point
  std::vector<std::set<size_t>> users_;            // per owner: steps of the entry point
};

}  // namespace

BandCosts band_costs(const TargetInfo& target) {
  // Second caches give 30 to 60 bytes per cycle, what lies behind them 2 to 10. A call begins and
  // ends loops, and its last tiles are small ones.
  BandCosts costs;
  costs.near_bytes = target.l2_bytes;
  costs.near_bytes_per_cycle = 48;
  costs.far_bytes_per_cycle = 6;
  costs.call_cycles = 500;
  return costs;
}

Program row_bands(const Program& program, const BandCosts& costs) {
  return Choosing(program, costs).run();
}

std::optional<Program> band_steps(const Program& program, const BandChoice& choice) {
  return Choosing(program).run(choice);
}

Program row_bands(const Program& program, const TargetInfo& target) {
  return row_bands(program, band_costs(target));
}

}  // namespace backcast
