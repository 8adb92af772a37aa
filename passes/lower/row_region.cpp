#include "passes/lower/row_region.h"

#include <algorithm>
#include <map>

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
        scales[s] = std::max(scales[s], scales[reader.step] * reader.access.scale);
      }
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
    if (!Windows(region, trips, s).run(rates[s])) return std::nullopt;
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
    const RowKernel& kernel = *region.kernels[s];
    const std::vector<BufferId>& buffers = region.calls[s]->buffers;
    for (const size_t param : kernel.whole) work.whole += program.storage_bytes(buffers[param]);
    for (const std::vector<RowAccess>* list : {&kernel.reads, &kernel.writes}) {
      for (const RowAccess& access : *list) {
        const BufferId id = program.owner(buffers[access.param]);
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
    kernels_.push_back(call ? match_rows(program_.kernels.at(step.kernel))
                            : std::vector<RowKernel>());
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

/// How every step of a region runs.
struct RowRegions::Forms {
  size_t first = 0, last = 0;
  std::vector<const RowKernel*> chosen;  // per step from the first; null: once, before the others
  struct Use {
    BufferId id;
    const Kernel* kernel;
    RowAccess access;
  };
  std::map<BufferId, std::vector<Use>> uses;  // per owner: reads by rows
  std::set<BufferId> whole;                   // owners of which a step needs all at once
};

std::optional<RowRegion> RowRegions::region(size_t first, size_t last) const {
  const Forms forms = this->forms(first, last);
  if (forms.chosen.front() == nullptr || forms.chosen.back() == nullptr) return std::nullopt;
  RowRegion region{first, last, {}, {}, {}, {}};
  std::set<BufferId> written, touched;
  for (size_t s = first; s <= last; ++s) {
    const Step& step = entry_.steps[s];
    const RowKernel* kernel = forms.chosen[s - first];
    if (kernel == nullptr) {
      if (!add_before(region, step, touched, written)) return std::nullopt;
      continue;
    }
    region.calls.push_back(&step);
    region.kernels.push_back(kernel);
    for (const BufferId id : step.buffers) touched.insert(program_.owner(id));
    for (const RowAccess& access : kernel->writes) {
      const BufferId id = step.buffers[access.param];
      if (!written.insert(program_.owner(id)).second) return std::nullopt;
      if (s == last) {
        if (entry_.optional_outputs.contains(program_.owner(id))) return std::nullopt;
        continue;
      }
      region.tensors.push_back(band_tensor(step, region.calls.size() - 1, access));
    }
  }
  for (const Step* step : region.before) {
    for (const BufferId id : step->buffers) written.erase(program_.owner(id));
  }
  for (size_t s = 0; s < region.calls.size(); ++s) {
    if (!add_readers(region, s, written)) return std::nullopt;
  }
  for (const BandTensor& tensor : region.tensors) {
    if (tensor.readers.empty()) return std::nullopt;
  }
  return region;
}

/// From the last step, of which the rows are the outermost ones, to the operands: rows of a result
/// are what those who read it see as rows.
RowRegions::Forms RowRegions::forms(size_t first, size_t last) const {
  Forms forms{first, last, std::vector<const RowKernel*>(last - first + 1), {}, {}};
  for (size_t s = last + 1; s-- > first;) {
    const Step& step = entry_.steps[s];
    const RowKernel* form = s == last ? by_outermost(s) : form_of(s, forms);
    forms.chosen[s - first] = form;
    if (form == nullptr) {
      loop::for_each_buffer(step, [&](BufferId id) { forms.whole.insert(program_.owner(id)); });
      continue;
    }
    const Kernel& kernel = program_.kernels.at(step.kernel);
    for (const size_t param : form->whole) {
      forms.whole.insert(program_.owner(step.buffers[param]));
    }
    for (const RowAccess& access : form->reads) {
      const BufferId id = step.buffers[access.param];
      forms.uses[program_.owner(id)].push_back({id, &kernel, access});
    }
  }
  return forms;
}

const RowKernel* RowRegions::by_outermost(size_t step) const {
  for (const RowKernel& form : kernels_[step]) {
    const Kernel& kernel = program_.kernels.at(entry_.steps[step].kernel);
    const auto outer = [&](const RowAccess& write) {
      return write.dimension == outermost(kernel.buffers[write.param].shape);
    };
    if (std::all_of(form.writes.begin(), form.writes.end(), outer)) return &form;
  }
  return nullptr;
}

/// By the rows that later steps see, when these see all of its results by rows and nobody else
/// does; null otherwise.
const RowKernel* RowRegions::form_of(size_t step, const Forms& forms) const {
  const std::vector<BufferId>& buffers = entry_.steps[step].buffers;
  const auto agrees = [&](const RowAccess& write) {
    const BufferId id = buffers[write.param];
    const auto uses = forms.uses.find(program_.owner(id));
    return uses != forms.uses.end() && !forms.whole.contains(program_.owner(id)) &&
           is_inside(id, forms.first, forms.last) &&
           std::all_of(uses->second.begin(), uses->second.end(), [&](const Forms::Use& use) {
             return sees_rows(id, write, use.id, *use.kernel, use.access);
           });
  };
  for (const RowKernel& form : kernels_[step]) {
    if (std::all_of(form.writes.begin(), form.writes.end(), agrees)) return &form;
  }
  return nullptr;
}

/// Whether rows of a result are rows of the same buffer or of a view of all of it.
bool RowRegions::sees_rows(BufferId written, const RowAccess& write, BufferId read,
                           const Kernel& reader, const RowAccess& access) const {
  const Dims& shape = program_.buffer(written).shape;
  const Dims& seen = reader.buffers[access.param].shape;
  for (BufferId id = read; id != written; id = program_.buffer(id).view_of) {
    if (program_.buffer(id).view_of < 0 || !(program_.buffer(id).view_offset == Dim(0))) {
      return false;
    }
  }
  return seen == program_.buffer(read).shape &&
         program_.buffer(read).element == program_.buffer(written).element &&
         same_rows(shape, write.dimension, seen, access.dimension);
}

/// A step that goes before those of the region: it needs nothing of theirs, and those that came
/// before it nothing of what it overwrites.
bool RowRegions::add_before(RowRegion& region, const Step& step, const std::set<BufferId>& touched,
                            std::set<BufferId>& written) const {
  if (step.kind != StepKind::call) return false;
  const Kernel& kernel = program_.kernels.at(step.kernel);
  for (size_t i = 0; i < step.buffers.size(); ++i) {
    const BufferId id = program_.owner(step.buffers[i]);
    if (region.tensor(id) != nullptr) return false;
    if (kernel.buffers[i].mode == loop::AccessMode::read) continue;
    if (touched.contains(id) || !written.insert(id).second) return false;
  }
  region.before.push_back(&step);
  return true;
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
  tensor.dimension = access.dimension;
  tensor.scattered = access.dimension != *outermost(program_.buffer(tensor.id).shape);
  tensor.rows = access.extent;
  tensor.row_bytes = program_.storage_bytes(tensor.id) / tensor.rows;
  tensor.row_elements = tensor.row_bytes / byte_size(program_.buffer(tensor.id).element);
  return tensor;
}

/// What step s of the region reads of band tensors; false when it needs all of one at once, or
/// reads what the region writes in any other way.
bool RowRegions::add_readers(RowRegion& region, size_t s, const std::set<BufferId>& written) const {
  const Step& step = *region.calls[s];
  const Kernel& kernel = program_.kernels.at(step.kernel);
  for (const size_t param : region.kernels[s]->whole) {
    if (written.contains(program_.owner(step.buffers[param]))) return false;
  }
  for (const RowAccess& access : region.kernels[s]->reads) {
    const BufferId id = step.buffers[access.param];
    const BufferId owner = program_.owner(id);
    if (!written.contains(owner)) continue;
    const auto tensor =
        std::find_if(region.tensors.begin(), region.tensors.end(),
                     [&](const BandTensor& candidate) { return candidate.id == owner; });
    if (tensor == region.tensors.end() || tensor->producer >= s) return false;
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
