// See example_loops.h. Chains are as long as they can be; what would read many weights for little
// arithmetic in every trip ends or divides them.
#include "passes/lower/example_loops.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "ir/loop/add.h"
#include "ir/loop/step_access.h"
#include "passes/lower/definition_cost.h"
#include "passes/lower/example_steps.h"
#include "passes/lower/moved_steps.h"
#include "passes/lower/row_bands.h"

namespace backcast {
namespace {

using loop::AccessMode;
using loop::Buffer;
using loop::BufferClass;
using loop::BufferId;
using loop::Kernel;
using loop::Program;
using loop::Step;
using loop::StepKind;

// Shares of a chain's arithmetic: what loops may add to it, and what a step may that begins, ends
// or divides one.
constexpr double kMostAdded = 0.1;
constexpr double kMostOfStep = 0.01;
// And of its multiply-accumulates, what several threads must be able to share.
constexpr double kLeastShared = 0.75;

/// Steps of an entry point from the first to the last, of which some (`before`) run once in front
/// of the others, and the owners of what exists for one example of these.
struct Chain {
  size_t first = 0, last = 0;
  std::set<size_t> before;
  std::set<BufferId> local;
};

/// The steps of an entry point that treat examples apart, in the order in which they run.
class Examples {
 public:
  Examples(const Program& program, const loop::EntryPoint& entry, const Dim& count)
      : program_(program), count_(count) {
    for (const BufferId id : entry.inputs) {
      const Dims& shape = program.buffer(id).shape;
      if (!shape.empty() && shape[0] == count) inside_[id] = elements_inside(shape, {0, 1});
    }
    for (const Step& step : entry.steps) kernels_.push_back(match(step));
  }

  const Dim& count() const { return count_; }
  /// Null for a step that does not.
  const ExampleKernel* kernel(size_t step) const {
    return kernels_[step] ? &*kernels_[step] : nullptr;
  }
  /// What a buffer has of every example: in one dimension, and the first of its elements in the
  /// first example's part of the storage.
  struct Part {
    ExampleShare share;
    Dim begin;
  };
  /// Nothing for a buffer that does not consist of such parts.
  std::optional<Part> part(BufferId id) const {
    const Buffer& buffer = program_.buffer(id);
    const BufferId owner = program_.owner(id);
    const auto inside = inside_.find(owner);
    if (inside == inside_.end() || buffer.element != program_.buffer(owner).element) {
      return std::nullopt;
    }
    const Dim bytes = inside->second * Dim(byte_size(buffer.element));
    const std::optional<int64_t> before =
        quotient(loop::byte_offset(program_, id), count_ * bytes, program_.symbols);
    const std::optional<ExampleShare> share =
        share_of(buffer.shape, inside->second, count_, program_.symbols);
    if (!before || !share) return std::nullopt;
    return Part{*share, inside->second * Dim(*before)};
  }
  /// Whether every example's part of a storage is one piece.
  bool in_one_piece(BufferId owner) const {
    const std::optional<Part> whole = part(owner);
    if (!whole || whole->share.outside > 1) return false;
    const Dims& shape = program_.buffer(owner).shape;
    return std::all_of(shape.begin(),
                       shape.begin() + static_cast<std::ptrdiff_t>(whole->share.dimension),
                       [](const Dim& extent) { return extent == Dim(1); });
  }

 private:
  std::optional<ExampleKernel> match(const Step& step) {
    std::optional<ExampleKernel> found;
    if (step.kind == StepKind::call) {
      const Kernel& kernel = program_.kernels.at(step.kernel);
      std::map<size_t, ExampleShare> known;
      for (size_t i = 0; i < step.buffers.size(); ++i) {
        const bool same_shape = program_.buffer(step.buffers[i]).shape == kernel.buffers[i].shape;
        const std::optional<Part> at = part(step.buffers[i]);
        if (mode_of(step, i) == AccessMode::read && same_shape && at) known[i] = at->share;
      }
      found = match_examples(kernel, count_, known, program_.symbols);
      if (found && !reads_parts(step, *found)) found.reset();
    }
    for (const BufferId id : loop::written_buffers(program_, step)) inside_.erase(id);
    if (!found) return found;
    for (const auto& [i, share] : found->apart) {
      const BufferId id = step.buffers[i];
      if (mode_of(step, i) != AccessMode::read) inside_[program_.owner(id)] = inside(id, share);
    }
    return found;
  }

  AccessMode mode_of(const Step& step, size_t i) const {
    return program_.kernels.at(step.kernel).buffers[i].mode;
  }

  Dim inside(BufferId id, const ExampleShare& share) const {
    return elements_inside(program_.buffer(id).shape, share);
  }

  /// Whether operands are read where their examples are; those that no step wrote example by
  /// example have them where they are read first.
  bool reads_parts(const Step& step, const ExampleKernel& found) {
    return std::all_of(found.apart.begin(), found.apart.end(), [&](const auto& read) {
      const auto& [i, share] = read;
      const BufferId id = step.buffers[i];
      if (mode_of(step, i) != AccessMode::read) return true;
      const BufferId owner = program_.owner(id);
      if (program_.buffer(owner).kind != BufferClass::constant)
        inside_.try_emplace(owner, inside(id, share));
      const std::optional<Part> at = part(id);
      return at && at->share == share;
    });
  }

  const Program& program_;
  const Dim count_;
  std::vector<std::optional<ExampleKernel>> kernels_;
  std::map<BufferId, Dim> inside_;  // by owner: elements of one example without interruption
};

class Choosing {
 public:
  Choosing(const Program& program, const loop::EntryPoint& entry, const Examples& examples,
           const TargetInfo& target)
      : program_(program),
        entry_(entry),
        examples_(examples),
        costs_(band_costs(target)),
        grain_(target.parallel_grain),
        users_(program.buffers.size()) {
    for (size_t s = 0; s < entry.steps.size(); ++s) work_.push_back(work_of(s));
    for (const loop::EntryPoint& any : program.entries) {
      for (size_t s = 0; s < any.steps.size(); ++s) {
        loop::for_each_buffer(any.steps[s], [&](BufferId id) {
          users_[static_cast<size_t>(program.owner(id))].insert(&any == &entry ? s : SIZE_MAX);
        });
      }
    }
  }

  std::vector<Chain> run() {
    if (!entry_.steps.empty()) choose(0, entry_.steps.size() - 1);
    return std::move(chains_);
  }

 private:
  /// Of one example; cycles and bytes.
  struct Work {
    double arithmetic = 0;
    int64_t weights = 0;  // read alike for all examples
  };

  Work work_of(size_t step) const {
    const ExampleKernel* kernel = examples_.kernel(step);
    Work work;
    if (kernel == nullptr) return work;
    const loop::Definition& one = *loop::only_definition(kernel->one);
    const int64_t operations = std::max<int64_t>(cost(one).total(), 1);
    // A multiplication and an addition are one.
    work.arithmetic =
        static_cast<double>(points(one, program_.symbols) * operations) / 2 / costs_.macs_per_cycle;
    const std::vector<BufferId>& buffers = entry_.steps[step].buffers;
    for (size_t i = 0; i < buffers.size(); ++i) {
      if (!kernel->apart.contains(i)) work.weights += program_.storage_bytes(buffers[i]);
    }
    return work;
  }

  double arithmetic(size_t first, size_t last) const {
    double cycles = 0;
    for (size_t s = first; s <= last; ++s) cycles += work_[s].arithmetic;
    return cycles;
  }

  /// What a step takes longer, by the example: the call, and weights read again, where half of the
  /// arithmetic does not hide that.
  double added(size_t step, bool far) const {
    if (examples_.kernel(step) == nullptr) return 0;
    const double rate = far ? costs_.far_bytes_per_cycle : costs_.near_bytes_per_cycle;
    const double stream = static_cast<double>(work_[step].weights) / rate;
    return costs_.call_cycles + std::max(stream - work_[step].arithmetic / 2, 0.0);
  }

  /// Adds the chains among these steps.
  void choose(size_t first, size_t last) {
    int64_t weights = 0;
    for (size_t s = first; s <= last; ++s) weights += work_[s].weights;
    const bool far = costs_.near_bytes > 0 && weights > costs_.near_bytes / 2;
    const double most = kMostOfStep * arithmetic(first, last);
    const auto may_end = [&](size_t s) {
      return examples_.kernel(s) != nullptr && added(s, far) <= most;
    };
    while (first < last && !may_end(first)) ++first;
    while (first < last && !may_end(last)) --last;
    if (first >= last) return;
    Chain chain{first, last, {}, {}};
    if (const std::optional<size_t> in_the_way = complete(chain)) {
      if (*in_the_way > first) choose(first, *in_the_way - 1);
      if (*in_the_way < last) choose(*in_the_way + 1, last);
      return;
    }
    size_t worst = first;
    double all = 0;
    for (size_t s = first; s <= last; ++s) {
      all += added(s, far);
      if (added(s, far) > added(worst, far)) worst = s;
    }
    if (all > kMostAdded * arithmetic(first, last)) {
      if (worst > first) choose(first, worst - 1);
      if (worst < last) choose(worst + 1, last);
    } else if (!chain.local.empty() && is_shared(chain)) {
      chains_.push_back(std::move(chain));
    }
  }

  /// Whether several threads find enough in single examples.
  bool is_shared(const Chain& chain) const {
    int64_t shared = 0, all = 0;
    for (size_t s = chain.first; s <= chain.last; ++s) {
      const ExampleKernel* kernel = examples_.kernel(s);
      const int64_t macs = kernel == nullptr ? 0 : kernel->one.macs;
      all += macs;
      if (2 * macs >= grain_) shared += macs;
    }
    return static_cast<double>(shared) >= kLeastShared * static_cast<double>(all);
  }

  /// Which steps go before the others and what exists for one example; or a step in whose way a
  /// loop over examples would be.
  std::optional<size_t> complete(Chain& chain) const {
    std::set<BufferId> touched, written;
    for (size_t s = chain.first; s <= chain.last; ++s) {
      const Step& step = entry_.steps[s];
      const std::set<BufferId> reads = loop::read_buffers(program_, step);
      const std::set<BufferId> writes = loop::written_buffers(program_, step);
      if (examples_.kernel(s) == nullptr) {
        const bool moves = step.kind == StepKind::call || step.kind == StepKind::copy;
        if (!moves || loop::share_buffers(reads, written) || loop::share_buffers(writes, touched))
          return s;
        chain.before.insert(s);
        continue;
      }
      if (loop::share_buffers(writes, touched) || !is_by_example(chain, s, written)) return s;
      touched.insert(reads.begin(), reads.end());
      touched.insert(writes.begin(), writes.end());
      written.insert(writes.begin(), writes.end());
    }
    for (const BufferId id : written) {
      if (is_local(chain, id)) chain.local.insert(id);
    }
    return std::nullopt;
  }

  bool is_local(const Chain& chain, BufferId owner) const {
    const std::set<size_t>& users = users_[static_cast<size_t>(owner)];
    return program_.buffer(owner).kind == BufferClass::arena && examples_.part(owner) &&
           std::all_of(users.begin(), users.end(), [&](size_t s) {
             return s >= chain.first && s <= chain.last && !chain.before.contains(s);
           });
  }

  /// Whether a step needs nothing that others write but what is its example's, and finds that,
  /// where it is not local, in one piece. `written`: by steps of the chain before it.
  bool is_by_example(const Chain& chain, size_t s, const std::set<BufferId>& written) const {
    const Step& step = entry_.steps[s];
    const Kernel& kernel = program_.kernels.at(step.kernel);
    for (size_t i = 0; i < step.buffers.size(); ++i) {
      const BufferId id = step.buffers[i], owner = program_.owner(id);
      const bool writes = kernel.buffers[i].mode != AccessMode::read;
      const BufferClass kind = program_.buffer(owner).kind;
      const bool may_write = (kind == BufferClass::arena || kind == BufferClass::output) &&
                             !entry_.extents.contains(owner) &&
                             !entry_.optional_outputs.contains(owner);
      if (writes && !may_write) return false;
      const auto part = examples_.kernel(s)->apart.find(i);
      if (part == examples_.kernel(s)->apart.end()) {
        if (written.contains(owner)) return false;
        continue;
      }
      const std::optional<Examples::Part> seen = examples_.part(id);
      const bool same_shape = program_.buffer(id).shape == kernel.buffers[i].shape;
      if (!same_shape || !seen || seen->share != part->second) return false;
      if (!is_local(chain, owner) && !examples_.in_one_piece(owner)) return false;
    }
    return true;
  }

  const Program& program_;
  const loop::EntryPoint& entry_;
  const Examples& examples_;
  const BandCosts costs_;
  const int64_t grain_;
  std::vector<Work> work_;               // per step
  std::vector<std::set<size_t>> users_;  // per owner: steps that name it
  std::vector<Chain> chains_;
};

/// Writes the loop of one chain.
class Writing {
 public:
  Writing(Program& program, const Examples& examples, const Chain& chain)
      : program_(program), examples_(examples), chain_(chain) {}

  Step run(const std::vector<Step>& steps) {
    const int64_t most = std::max<int64_t>(examples_.count().range(program_.symbols).max, 1);
    Step loop;
    loop.kind = StepKind::loop;
    loop.count = examples_.count();
    loop.symbol = loop::add_symbol(program_, "example", {0, most - 1});
    loop.buffers = {-1, -1};
    loop.loc = steps[chain_.last].loc;
    example_ = Dim::symbol(loop.symbol);
    for (size_t s = chain_.first; s <= chain_.last; ++s) {
      if (!chain_.before.contains(s)) loop.body.push_back(of_one(steps[s], *examples_.kernel(s)));
    }
    return loop;
  }

 private:
  Step of_one(Step step, const ExampleKernel& kernel) {
    std::vector<Dim> sizes;
    const std::vector<std::string>& all = program_.kernels.at(step.kernel).sizes;
    for (const std::string& size : kernel.one.sizes) {
      const auto at = std::find(all.begin(), all.end(), size) - all.begin();
      sizes.push_back(step.sizes[static_cast<size_t>(at)]);
    }
    step.sizes = std::move(sizes);
    step.kernel = loop::add_kernel(program_, step.kernel + "_one", kernel.one);
    for (size_t i = 0; i < step.buffers.size(); ++i) {
      if (kernel.apart.contains(i)) step.buffers[i] = part(step.buffers[i]);
    }
    return step;
  }

  /// What the example has of a buffer.
  BufferId part(BufferId id) {
    const auto [found, fresh] = parts_.try_emplace(id, -1);
    if (!fresh) return found->second;
    const BufferId owner = program_.owner(id);
    const Examples::Part seen = *examples_.part(id);
    const Dims shape = shape_of_one(program_.buffer(id).shape, seen.share);
    if (!chain_.local.contains(owner)) {
      const Dim offset = example_ * elements_inside(program_.buffer(id).shape, seen.share);
      return parts_[id] = add_part(program_, id, shape, offset);
    }
    if (id != owner) return parts_[id] = add_part(program_, part(owner), shape, seen.begin);
    Buffer one = program_.buffer(id);
    one.shape = shape;
    const std::string name = one.name + "_one";
    return parts_[id] = loop::add_buffer(program_, name, std::move(one));
  }

  Program& program_;
  const Examples& examples_;
  const Chain& chain_;
  Dim example_;
  std::map<BufferId, BufferId> parts_;
};

/// What may be the number of examples: the outermost dimension of an input, and one of an output.
std::set<Dim> counts_of(const Program& program, const loop::EntryPoint& entry) {
  std::set<Dim> counts;
  for (const BufferId id : entry.inputs) {
    const Dims& shape = program.buffer(id).shape;
    if (shape.empty() || shape[0] == Dim(1)) continue;
    const auto has_it = [&](BufferId output) {
      const Dims& dims = program.buffer(output).shape;
      return std::find(dims.begin(), dims.end(), shape[0]) != dims.end();
    };
    if (std::any_of(entry.outputs.begin(), entry.outputs.end(), has_it)) counts.insert(shape[0]);
  }
  return counts;
}

/// Writes the loops of an entry point of `program` into that of `result`; how many steps they hold.
size_t write_loops(const Program& program, size_t entry, const TargetInfo& target,
                   Program& result) {
  const std::vector<Step>& steps = program.entries[entry].steps;
  for (const Dim& count : counts_of(program, program.entries[entry])) {
    const Examples examples(program, program.entries[entry], count);
    const std::vector<Chain> chains =
        Choosing(program, program.entries[entry], examples, target).run();
    if (chains.empty()) continue;
    std::vector<Step> written;
    size_t looped = 0, next = 0;
    for (const Chain& chain : chains) {
      while (next < chain.first) written.push_back(steps[next++]);
      for (const size_t s : chain.before) written.push_back(steps[s]);
      written.push_back(Writing(result, examples, chain).run(steps));
      next = chain.last + 1;
      looped += next - chain.first - chain.before.size();
    }
    while (next < steps.size()) written.push_back(steps[next++]);
    result.entries[entry].steps = std::move(written);
    return looped;
  }
  return 0;
}

}  // namespace

Program example_loops(const Program& program, const TargetInfo& target, std::string* summary) {
  if (loop::writes_state(program)) return program;
  Program result = program;
  size_t all = 0, looped = 0;
  for (size_t e = 0; e < program.entries.size(); ++e) {
    all += program.entries[e].steps.size();
    looped += write_loops(program, e, target, result);
  }
  loop::drop_uncalled(result);
  if (summary != nullptr && looped > 0) {
    *summary = fmt::format("computes {} of {} steps example by example", looped, all);
  }
  return result;
}

}  // namespace backcast
