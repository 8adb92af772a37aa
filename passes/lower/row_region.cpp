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

bool RowRegion::is_aside(size_t step) const {
  return step + 1 < calls.size() &&
         std::none_of(tensors.begin(), tensors.end(),
                      [&](const BandTensor& tensor) { return tensor.producer == step; });
}

std::optional<size_t> RowRegion::producer_of_rows(size_t step) const {
  if (!is_aside(step)) return std::nullopt;
  std::optional<size_t> latest;
  bool same = false;
  for (const BandTensor& tensor : tensors) {
    for (const BandTensor::Reader& reader : tensor.readers) {
      if (reader.step != step || (latest && *latest > tensor.producer)) continue;
      const bool as_they_are =
          reader.access.is_identity() && reader.access.extent == kernels[step]->rows;
      same = as_they_are && (same || latest != tensor.producer);
      latest = tensor.producer;
    }
  }
  return same ? latest : std::nullopt;
}

std::optional<size_t> RowRegion::twin(size_t step) const {
  if (!is_aside(step) || producer_of_rows(step)) return std::nullopt;
  for (const BandTensor& tensor : tensors) {
    for (const BandTensor::Reader& mine : tensor.readers) {
      if (mine.step != step) continue;
      for (const BandTensor::Reader& other : tensor.readers) {
        if (other.step > step && other.access.reaches_like(mine.access) &&
            kernels[other.step]->rows == kernels[step]->rows && !producer_of_rows(other.step)) {
          return other.step;
        }
      }
    }
  }
  return std::nullopt;
}

namespace {

/// Results and operands have as many rows, or operands a multiple of them.
bool is_plain(const RowKernel& form) {
  return !form.sums && std::all_of(form.reads.begin(), form.reads.end(),
                                   [](const RowAccess& read) { return read.per == 1; });
}

}  // namespace

RowRegions::RowRegions(const Program& program, const std::vector<Step>& steps, bool aside)
    : program_(program), steps_(steps), aside_(aside), users_(program.buffers.size()) {
  for (const Step& step : steps) {
    const bool call = step.kind == StepKind::call;
    kernels_.push_back(call ? match_rows(program_.kernels.at(step.kernel))
                            : std::vector<RowKernel>());
    if (!aside)
      std::erase_if(kernels_.back(), [](const RowKernel& form) { return !is_plain(form); });
  }
  for (const loop::EntryPoint& entry : program_.entries) {
    add_users(entry.steps);
    optional_.insert(entry.optional_outputs.begin(), entry.optional_outputs.end());
  }
}

/// All but the calls among `steps_` lie outside of every region.
void RowRegions::add_users(const std::vector<Step>& steps) {
  for (size_t s = 0; s < steps.size(); ++s) {
    const bool inside = &steps == &steps_ && steps[s].kind == StepKind::call;
    for (const BufferId id : steps[s].buffers) {
      if (id >= 0) users_[static_cast<size_t>(program_.owner(id))].insert(inside ? s : SIZE_MAX);
    }
    add_users(steps[s].body);
    add_users(steps[s].otherwise);
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
    int64_t rows;  // of the reader
  };
  std::map<BufferId, std::vector<Use>> uses;  // per owner: reads by rows
  std::set<BufferId> whole;                   // owners of which a step needs all at once
};

std::optional<RowRegion> RowRegions::region(size_t first, size_t last) const {
  std::optional<RowRegion> found = region_of(forms(first, last, false));
  return found ? std::move(found) : region_of(forms(first, last, true));
}

std::optional<RowRegion> RowRegions::region_of(const Forms& forms) const {
  const auto [first, last] = std::pair(forms.first, forms.last);
  if (forms.chosen.front() == nullptr || forms.chosen.back() == nullptr) return std::nullopt;
  RowRegion region{first, last, {}, {}, {}, {}, {}};
  std::set<BufferId> written, touched, whole;
  for (size_t s = first; s <= last; ++s) {
    const Step& step = steps_[s];
    const RowKernel* kernel = forms.chosen[s - first];
    if (kernel == nullptr) {
      if (!add_before(region, step, touched, whole, written)) return std::nullopt;
      continue;
    }
    region.calls.push_back(&step);
    region.kernels.push_back(kernel);
    for (const BufferId id : step.buffers) touched.insert(program_.owner(id));
    if (!add_results(region, s, *kernel, written, whole)) return std::nullopt;
  }
  for (const Step* step : region.before) {
    for (const BufferId id : loop::written_buffers(program_, *step)) written.erase(id);
  }
  for (size_t s = 0; s < region.calls.size(); ++s) {
    if (!add_readers(region, s, written)) return std::nullopt;
  }
  for (const BandTensor& tensor : region.tensors) {
    if (tensor.readers.empty()) return std::nullopt;
  }
  return region;
}

/// Band tensors, but for the last step and steps aside.
bool RowRegions::add_results(RowRegion& region, size_t step, const RowKernel& form,
                             std::set<BufferId>& written, std::set<BufferId>& whole) const {
  const Step& call = steps_[step];
  const Kernel& kernel = program_.kernels.at(call.kernel);
  const bool inside = step != region.last && stays_inside(call, form, region.first, region.last);
  for (size_t i = 0; i < kernel.buffers.size(); ++i) {
    if (kernel.buffers[i].mode == loop::AccessMode::read) continue;
    const BufferId owner = program_.owner(call.buffers[i]);
    if (!written.insert(owner).second) return false;
    if (inside) continue;
    if (optional_.contains(owner)) return false;
    whole.insert(owner);
    if (form.sums) region.summed[owner] = region.calls.size() - 1;
  }
  if (!inside) return true;
  for (const RowAccess& access : form.writes) {
    region.tensors.push_back(band_tensor(call, region.calls.size() - 1, access));
  }
  return true;
}

/// From the last step, of which the rows are the outermost ones, of results or else (`sums`) of
/// what it sums up, to the operands: rows of a result are what those who read it see as rows.
RowRegions::Forms RowRegions::forms(size_t first, size_t last, bool sums) const {
  Forms forms{first, last, std::vector<const RowKernel*>(last - first + 1), {}, {}};
  for (size_t s = last + 1; s-- > first;) {
    const Step& step = steps_[s];
    const RowKernel* form = s == last ? by_outermost(forms, sums) : form_of(s, forms);
    forms.chosen[s - first] = form;
    if (form == nullptr) {
      loop::for_each_buffer(step, [&](BufferId id) { forms.whole.insert(program_.owner(id)); });
      continue;
    }
    const Kernel& kernel = program_.kernels.at(step.kernel);
    for (const std::vector<size_t>* list : {&form->whole, &form->behind}) {
      for (const size_t param : *list) forms.whole.insert(program_.owner(step.buffers[param]));
    }
    for (const RowAccess& access : form->reads) {
      const BufferId id = step.buffers[access.param];
      forms.uses[program_.owner(id)].push_back({id, &kernel, access, form->rows});
    }
  }
  return forms;
}

/// The last step: its results by their outermost dimension, or a sum along that of an operand which
/// the region makes.
const RowKernel* RowRegions::by_outermost(const Forms& forms, bool sums) const {
  const Step& step = steps_[forms.last];
  for (const RowKernel& form : kernels_[forms.last]) {
    const Kernel& kernel = program_.kernels.at(step.kernel);
    const auto outer = [&](const RowAccess& access) {
      return access.dimension == outermost(kernel.buffers[access.param].shape);
    };
    const auto made_by_rows = [&](const RowAccess& read) {
      return outer(read) &&
             is_inside(program_.owner(step.buffers[read.param]), forms.first, forms.last);
    };
    if (form.sums != sums) continue;
    if (sums ? std::any_of(form.reads.begin(), form.reads.end(), made_by_rows)
             : std::all_of(form.writes.begin(), form.writes.end(), outer)) {
      return &form;
    }
  }
  return nullptr;
}

/// By the rows that later steps see, when these see all of its results by rows and nobody else
/// does; null otherwise.
const RowKernel* RowRegions::form_of(size_t step, const Forms& forms) const {
  const std::vector<BufferId>& buffers = steps_[step].buffers;
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
    if (!form.sums && std::all_of(form.writes.begin(), form.writes.end(), agrees)) return &form;
  }
  for (const RowKernel& form : kernels_[step]) {
    if (aside_ && goes_aside(step, form, forms)) return &form;
  }
  return nullptr;
}

/// Whether the step goes through rows of what the region makes as these are made, or as a later
/// step goes through them.
bool RowRegions::goes_aside(size_t step, const RowKernel& form, const Forms& forms) const {
  const Step& call = steps_[step];
  const Kernel& kernel = program_.kernels.at(call.kernel);
  if (stays_inside(call, form, forms.first, forms.last)) return false;
  bool together = false;
  for (const RowAccess& access : form.reads) {
    const BufferId owner = program_.owner(call.buffers[access.param]);
    const auto uses = forms.uses.find(owner);
    if (uses == forms.uses.end()) continue;
    bool like_one = access.is_identity() && access.extent == form.rows;
    for (const Forms::Use& use : uses->second) {
      const Dims& seen = use.kernel->buffers[use.access.param].shape;
      const Dims& shape = kernel.buffers[access.param].shape;
      if (!same_rows(shape, access.dimension, seen, use.access.dimension)) return false;
      like_one = like_one || (use.rows == form.rows && use.access.reaches_like(access));
    }
    together = together || (like_one && is_inside(owner, forms.first, forms.last));
  }
  return together;
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
                            const std::set<BufferId>& whole, std::set<BufferId>& written) const {
  if (step.kind != StepKind::call) return false;
  const Kernel& kernel = program_.kernels.at(step.kernel);
  for (size_t i = 0; i < step.buffers.size(); ++i) {
    const BufferId id = program_.owner(step.buffers[i]);
    if (region.tensor(id) != nullptr || whole.contains(id)) return false;
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

/// Whether results are rows that only these steps use.
bool RowRegions::stays_inside(const Step& step, const RowKernel& form, size_t first,
                              size_t last) const {
  return !form.sums &&
         std::all_of(form.writes.begin(), form.writes.end(), [&](const RowAccess& write) {
           return is_inside(step.buffers[write.param], first, last);
         });
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

/// Whether the rows that are read are those which the same step writes in their place.
bool RowRegions::is_in_place(const Step& step, const RowKernel& form, const RowAccess& read) const {
  const Kernel& kernel = program_.kernels.at(step.kernel);
  return std::any_of(form.writes.begin(), form.writes.end(), [&](const RowAccess& write) {
    const std::vector<std::string>& over = kernel.buffers[write.param].over;
    return program_.owner(step.buffers[write.param]) == program_.owner(step.buffers[read.param]) &&
           write.dimension == read.dimension && read.reaches_like(write) &&
           std::find(over.begin(), over.end(), kernel.buffers[read.param].name) != over.end();
  });
}

/// What step s of the region reads of band tensors; false when it needs all of one at once, or
/// reads what the region writes in any other way.
bool RowRegions::add_readers(RowRegion& region, size_t s, const std::set<BufferId>& written) const {
  const Step& step = *region.calls[s];
  const Kernel& kernel = program_.kernels.at(step.kernel);
  const auto is_written = [&](BufferId owner) {
    const auto sum = region.summed.find(owner);
    return written.contains(owner) && (sum == region.summed.end() || sum->second <= s);
  };
  for (const size_t param : region.kernels[s]->whole) {
    if (is_written(program_.owner(step.buffers[param]))) return false;
  }
  // Results may be read behind the sums, in their order, also those that they replace.
  for (const size_t param : region.kernels[s]->behind) {
    const BufferId owner = program_.owner(step.buffers[param]);
    if (written.contains(owner) && !region.summed.contains(owner)) return false;
  }
  for (const RowAccess& access : region.kernels[s]->reads) {
    const BufferId id = step.buffers[access.param];
    const BufferId owner = program_.owner(id);
    if (!is_written(owner)) continue;
    if (aside_ && is_in_place(step, *region.kernels[s], access)) continue;
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
