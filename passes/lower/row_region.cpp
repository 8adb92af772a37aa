#include "passes/lower/row_region.h"

#include <algorithm>

#include "ir/loop/step_access.h"

namespace backcast {

using loop::BufferClass;
using loop::BufferId;
using loop::Kernel;
using loop::Program;
using loop::Step;
using loop::StepKind;

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
      capacity = std::max(capacity, kept[t] + ends[t + 1] - ends[t]);
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

std::vector<int64_t> band_heights(const RowRegion& region) {
  constexpr int64_t kMaxTrips = 64;
  const int64_t rows = region.kernels.back()->rows;
  std::vector<int64_t> heights;
  for (int64_t trips = 2; trips <= std::min(rows, kMaxTrips); ++trips) {
    const int64_t height = (rows + trips - 1) / trips;
    if (heights.empty() || heights.back() != height) heights.push_back(height);
  }
  return heights;
}

BandWork work_of(const Program& program, const RowRegion& region, const RowTrips& trips) {
  BandWork work;
  for (const BandTensor& tensor : region.tensors) {
    work.windows += trips.capacity[tensor.producer] * tensor.row_bytes;
    for (const int64_t rows : trips.kept[tensor.producer]) work.kept += rows * tensor.row_bytes;
  }
  for (size_t s = 0; s < region.calls.size(); ++s) {
    const RowKernel& kernel = *region.kernels[s];
    const std::vector<BufferId>& buffers = region.calls[s]->buffers;
    for (const size_t param : kernel.whole) work.whole += program.storage_bytes(buffers[param]);
    for (const std::vector<RowAccess>* list : {&kernel.reads, &kernel.writes}) {
      for (const RowAccess& access : *list) {
        const BufferId id = buffers[access.param];
        if (region.tensor(id) == nullptr) work.parts += program.storage_bytes(id) / trips.trips;
      }
    }
  }
  return work;
}

// ---- regions ------------------------------------------------------------------------------------

RowRegions::RowRegions(const Program& program, const loop::EntryPoint& entry)
    : program_(program), entry_(entry) {
  for (const Step& step : entry.steps) {
    const bool call = step.kind == StepKind::call;
    kernels_.push_back(call ? match_rows(program_.kernels.at(step.kernel)) : std::nullopt);
  }
  users_.resize(program_.buffers.size());
  for (const loop::EntryPoint& any : program_.entries) {
    for (size_t s = 0; s < any.steps.size(); ++s) {
      // Steps of other entry points and steps within steps lie outside of every region.
      const bool inside = any.name == entry.name && any.steps[s].kind == StepKind::call;
      loop::for_each_buffer(any.steps[s], [&](BufferId id) {
        users_[static_cast<size_t>(program_.owner(id))].insert(inside ? s : SIZE_MAX);
      });
    }
  }
}

std::optional<RowRegion> RowRegions::region(size_t first, size_t last) const {
  RowRegion region{first, last, {}, {}, {}};
  std::set<BufferId> written;
  for (size_t s = first; s <= last; ++s) {
    if (!kernels_[s]) return std::nullopt;
    const Step& step = entry_.steps[s];
    region.calls.push_back(&step);
    region.kernels.push_back(&*kernels_[s]);
    for (const RowAccess& access : kernels_[s]->writes) {
      const BufferId id = step.buffers[access.param];
      if (!written.insert(program_.owner(id)).second) return std::nullopt;
      if (s == last) {
        if (entry_.optional_outputs.contains(program_.owner(id))) return std::nullopt;
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

bool RowRegions::is_inside(BufferId id, size_t first, size_t last) const {
  const loop::Buffer& buffer = program_.buffer(id);
  const std::set<size_t>& users = users_[static_cast<size_t>(id)];
  return buffer.kind == BufferClass::arena && buffer.view_of < 0 && *users.begin() >= first &&
         *users.rbegin() <= last;
}

BandTensor RowRegions::band_tensor(const Step& step, size_t producer,
                                   const RowAccess& access) const {
  BandTensor tensor;
  tensor.id = step.buffers[access.param];
  tensor.producer = producer;
  tensor.rows = access.extent;
  tensor.row_bytes = program_.storage_bytes(tensor.id) / tensor.rows;
  tensor.row_elements = tensor.row_bytes / byte_size(program_.buffer(tensor.id).element);
  return tensor;
}

/// What step s of the region reads of band tensors; false when it needs all of one at once, sees
/// it in another shape, or reads what the region writes in any other way.
bool RowRegions::add_readers(RowRegion& region, size_t s, const std::set<BufferId>& written) const {
  const Step& step = *region.calls[s];
  const Kernel& kernel = program_.kernels.at(step.kernel);
  for (const size_t param : region.kernels[s]->whole) {
    if (written.contains(program_.owner(step.buffers[param]))) return false;
  }
  for (const RowAccess& access : region.kernels[s]->reads) {
    const BufferId id = step.buffers[access.param];
    if (!written.contains(program_.owner(id))) continue;
    const auto tensor =
        std::find_if(region.tensors.begin(), region.tensors.end(),
                     [&](const BandTensor& candidate) { return candidate.id == id; });
    if (tensor == region.tensors.end() || tensor->producer >= s) return false;
    const Dims& shape = kernel.buffers[access.param].shape;
    if (shape != program_.buffer(id).shape || access.dimension != *outermost(shape)) return false;
    tensor->readers.push_back({s, access});
  }
  for (const RowAccess& access : region.kernels[s]->writes) {
    const BufferId id = step.buffers[access.param];
    if (region.tensor(id) && kernel.buffers[access.param].shape != program_.buffer(id).shape) {
      return false;
    }
  }
  return true;
}

}  // namespace backcast
