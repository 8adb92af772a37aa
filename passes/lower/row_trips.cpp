#include "passes/lower/row_trips.h"

#include <algorithm>

#include "passes/lower/row_sums.h"

namespace backcast {

using loop::BufferId;
using loop::Kernel;
using loop::Program;

bool RowTrips::keeps_rows(size_t step) const {
  return std::any_of(kept[step].begin(), kept[step].end(), [](int64_t n) { return n > 0; });
}

namespace {

/// Fills in one step, whose readers are known.
class Windows {
 public:
  Windows(const RowRegion& region, RowTrips& trips, size_t step)
      : region_(region), trips_(trips), step_(step) {}

  /// `rate`: rows per trip, but for the first.
  bool run(int64_t rate) {
    const size_t trips = static_cast<size_t>(trips_.trips);
    needed_.assign(trips, std::nullopt);
    for (const BandTensor& tensor : region_.tensors) {
      if (tensor.producer == step_ && !collect(tensor)) return false;
    }
    std::vector<int64_t>& ends = trips_.ends[step_];
    std::vector<int64_t>& kept = trips_.kept[step_];
    // The first row that this trip or a later one reads.
    std::vector<int64_t> first(trips + 1, INT64_MAX);
    for (size_t t = trips; t-- > 0;) {
      first[t] = std::min(first[t + 1], needed_[t] ? needed_[t]->begin : INT64_MAX);
    }
    if (first[0] == INT64_MAX) return false;
    ends.assign(1, first[0]);
    for (size_t t = 0; t < trips; ++t) {
      ends.push_back(std::max(ends[t], needed_[t] ? needed_[t]->end : 0));
    }
    for (size_t t = trips; t-- > 1;) ends[t] = std::max(ends[t], ends[t + 1] - rate);
    kept.clear();
    int64_t capacity = 0;
    for (size_t t = 0; t < trips; ++t) {
      kept.push_back(std::max<int64_t>(ends[t] - first[t], 0));
      capacity = std::max(capacity, kept[t] + ends[t + 1] - ends[t]);
    }
    trips_.capacity[step_] = capacity;
    return std::all_of(region_.tensors.begin(), region_.tensors.end(),
                       [&](const BandTensor& tensor) {
                         return tensor.producer != step_ || !tensor.scattered || passes(tensor);
                       });
  }

 private:
  bool collect(const BandTensor& tensor) {
    for (const BandTensor::Reader& reader : tensor.readers) {
      if (region_.producer_of_rows(reader.step) == step_) continue;
      for (size_t t = 0; t < needed_.size(); ++t) {
        const Rows computed = trips_.computed(reader.step, static_cast<int64_t>(t));
        if (computed.count() == 0) continue;
        const Rows read = reader.access.reached(computed);
        if (read.count() == 0) return false;
        std::optional<Rows>& all = needed_[t];
        if (!all) all = read;
        *all = {std::min(all->begin, read.begin), std::max(all->end, read.end)};
      }
    }
    return true;
  }

  /// Whether every trip reads the rows that it computes, all of them and no others.
  bool passes(const BandTensor& tensor) const {
    for (int64_t t = 0; t < trips_.trips; ++t) {
      const Rows written = trips_.computed(step_, t);
      for (const BandTensor::Reader& reader : tensor.readers) {
        if (region_.producer_of_rows(reader.step) == step_) continue;
        const Rows computed = trips_.computed(reader.step, t);
        if (computed.count() == 0) continue;
        const Rows read = reader.access.reached(computed);
        if (read.begin != written.begin || read.end != written.end) return false;
      }
    }
    return !trips_.keeps_rows(step_);
  }

  const RowRegion& region_;
  RowTrips& trips_;
  size_t step_;
  std::vector<std::optional<Rows>> needed_;  // per trip
};

/// Whether what steps read from outside of the region is never nothing.
bool reads_something(const RowRegion& region, const RowTrips& trips) {
  for (size_t s = 0; s < region.kernels.size(); ++s) {
    for (const RowAccess& access : region.kernels[s]->reads) {
      for (int64_t t = 0; t < trips.trips; ++t) {
        const Rows computed = trips.computed(s, t);
        if (computed.count() > 0 && access.reached(computed).count() == 0) return false;
      }
    }
  }
  return true;
}

/// Per step: how many of its rows one row of the last step's results takes.
std::vector<int64_t> scales_of(const RowRegion& region) {
  std::vector<int64_t> scales(region.kernels.size(), 1);
  for (size_t s = scales.size() - 1; s-- > 0;) {
    for (const BandTensor& tensor : region.tensors) {
      if (tensor.producer != s) continue;
      for (const BandTensor::Reader& reader : tensor.readers) {
        const int64_t per = reader.access.per;
        scales[s] =
            std::max(scales[s], (scales[reader.step] * reader.access.scale + per - 1) / per);
      }
    }
    for (size_t k = s + 1; k < scales.size(); ++k) {
      if (region.producer_of_rows(k) == s) scales[k] = scales[s];
    }
  }
  return scales;
}

/// Per step: rows that a trip takes which is neither one of the first nor one of the last.
std::vector<int64_t> rates_of(const RowRegion& region, BandHeight height) {
  std::vector<int64_t> rates = scales_of(region);
  for (int64_t& rate : rates) rate = (rate * height.rows + height.trips - 1) / height.trips;
  return rates;
}

/// Of all windows.
int64_t bytes_of(const RowRegion& region, const RowTrips& trips) {
  int64_t bytes = 0;
  for (const BandTensor& tensor : region.tensors) {
    bytes += trips.capacity[tensor.producer] * tensor.row_bytes;
  }
  return bytes;
}

/// A step aside goes through the rows that another step computes; false where those are not all.
bool go_together(const RowRegion& region, size_t aside, size_t with, RowTrips& trips) {
  const std::vector<int64_t>& ends = trips.ends[with];
  if (ends.empty() || ends.front() != 0 || ends.back() != region.kernels[aside]->rows) return false;
  trips.ends[aside] = ends;
  trips.kept[aside].assign(static_cast<size_t>(trips.trips), 0);
  return true;
}

/// The last step begins `lead` trips behind the first.
std::optional<RowTrips> trips_of(const RowRegion& region, BandHeight height, int64_t lead,
                                 const std::vector<int64_t>& rates) {
  const size_t steps = region.kernels.size();
  const int64_t rows = region.kernels.back()->rows;
  RowTrips trips;
  trips.trips = lead + (rows * height.trips + height.rows - 1) / height.rows;
  trips.period = height.trips;
  trips.ends.resize(steps);
  trips.kept.resize(steps);
  trips.capacity.assign(steps, height.rows);
  for (int64_t t = 0; t <= trips.trips; ++t) {
    const int64_t end = std::max<int64_t>(t - lead, 0) * height.rows / height.trips;
    trips.ends.back().push_back(std::min(end, rows));
  }
  trips.kept.back().assign(static_cast<size_t>(trips.trips), 0);
  for (size_t s = steps - 1; s-- > 0;) {
    if (region.is_aside(s)) {
      if (region.producer_of_rows(s)) continue;  // those are not known yet
      const std::optional<size_t> twin = region.twin(s);
      if (!twin || !go_together(region, s, *twin, trips)) return std::nullopt;
      continue;
    }
    if (!Windows(region, trips, s).run(rates[s])) return std::nullopt;
    for (size_t k = s + 1; k + 1 < steps; ++k) {
      if (region.producer_of_rows(k) == s && !go_together(region, k, s, trips)) return std::nullopt;
    }
  }
  if (!reads_something(region, trips)) return std::nullopt;
  return trips;
}

}  // namespace

std::optional<RowTrips> trips_of(const RowRegion& region, BandHeight height) {
  const std::vector<int64_t> rates = rates_of(region, height);
  std::optional<RowTrips> at_once = trips_of(region, height, 0, rates);
  if (!at_once) return std::nullopt;
  // What the first trip would compute at once goes into trips of their own, some rows each.
  int64_t lead = 0;
  for (size_t s = 0; s < rates.size(); ++s) {
    lead = std::max(lead, (at_once->computed(s, 0).count() - 1) / rates[s]);
  }
  if (lead == 0) return at_once;
  std::optional<RowTrips> spread = trips_of(region, height, lead, rates);
  return spread && bytes_of(region, *spread) < bytes_of(region, *at_once) ? spread : at_once;
}

std::vector<BandHeight> band_heights(const RowRegion& region) {
  constexpr int64_t kMaxTrips = 64;
  const int64_t rows = region.kernels.back()->rows;
  std::vector<BandHeight> heights;
  for (int64_t trips = 2; trips <= std::min(rows, kMaxTrips); ++trips) {
    const BandHeight height{(rows + trips - 1) / trips};
    if (heights.empty() || !(heights.back() == height)) heights.push_back(height);
  }
  const std::vector<int64_t> scales = scales_of(region);
  const int64_t most = *std::ranges::max_element(scales);
  for (int64_t trips = 2; trips <= most && rows * trips <= kMaxTrips; trips *= 2) {
    heights.push_back({1, trips});
  }
  return heights;
}

BandWork work_of(const Program& program, const RowRegion& region, const RowTrips& trips) {
  BandWork work;
  work.windows = bytes_of(region, trips);
  for (const BandTensor& tensor : region.tensors) {
    for (const int64_t rows : trips.kept[tensor.producer]) work.kept += rows * tensor.row_bytes;
  }
  for (size_t s = 0; s < region.calls.size(); ++s) {
    for (int64_t t = 0; t < trips.trips; ++t) work.calls += trips.computed(s, t).count() > 0;
  }
  for (size_t s = 0; s < region.calls.size(); ++s) {
    if (!region.kernels[s]->sums) continue;
    const int64_t bytes = sum_bytes(program.kernels.at(region.calls[s]->kernel));
    work.sums += bytes;
    work.kept += trips.trips * bytes;
    work.calls += 2;
  }
  for (size_t s = 0; s < region.calls.size(); ++s) {
    const RowKernel& kernel = *region.kernels[s];
    const std::vector<BufferId>& buffers = region.calls[s]->buffers;
    for (const size_t param : kernel.whole) work.whole += program.storage_bytes(buffers[param]);
    for (const RowAccess& access : kernel.accesses()) {
      const BufferId id = program.owner(buffers[access.param]);
      if (region.tensor(id) == nullptr) work.parts += program.storage_bytes(id) / trips.trips;
    }
  }
  return work;
}

}  // namespace backcast
