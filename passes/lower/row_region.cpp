#include "passes/lower/row_region.h"

#include <algorithm>

namespace backcast {

const BandTensor* RowRegion::tensor(loop::BufferId id) const {
  for (const BandTensor& tensor : tensors) {
    if (tensor.id == id) return &tensor;
  }
  return nullptr;
}

bool RowTrips::keeps_rows(size_t step) const {
  return std::any_of(kept[step].begin(), kept[step].end(), [](int64_t n) { return n > 0; });
}

namespace {

/// Fills in one step, whose readers are known.
class Windows {
 public:
  Windows(const RowRegion& region, RowTrips& trips, size_t step)
      : region_(region), trips_(trips), step_(step) {}

  bool run() {
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
    kept.clear();
    int64_t capacity = 0;
    for (size_t t = 0; t < trips; ++t) {
      ends.push_back(std::max(ends[t], needed_[t] ? needed_[t]->end : 0));
      kept.push_back(std::max<int64_t>(ends[t] - first[t], 0));
      const int64_t added = ends[t + 1] - ends[t];
      // What stays is copied to the front, over nothing of itself.
      if (added > 0 && kept[t] > added) return false;
      capacity = std::max(capacity, kept[t] + added);
    }
    trips_.capacity[step_] = capacity;
    return true;
  }

 private:
  bool collect(const BandTensor& tensor) {
    for (const BandTensor::Reader& reader : tensor.readers) {
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

}  // namespace

std::optional<RowTrips> trips_of(const RowRegion& region, int64_t height) {
  const size_t steps = region.kernels.size();
  const int64_t rows = region.kernels.back()->rows;
  RowTrips trips;
  trips.trips = (rows + height - 1) / height;
  trips.ends.resize(steps);
  trips.kept.resize(steps);
  trips.capacity.assign(steps, height);
  for (int64_t t = 0; t <= trips.trips; ++t) {
    trips.ends.back().push_back(std::min(t * height, rows));
  }
  trips.kept.back().assign(static_cast<size_t>(trips.trips), 0);
  for (size_t s = steps - 1; s-- > 0;) {
    if (!Windows(region, trips, s).run()) return std::nullopt;
  }
  if (!reads_something(region, trips)) return std::nullopt;
  return trips;
}

}  // namespace backcast
