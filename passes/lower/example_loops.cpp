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

/// Steps of an entry point from the first to the last, and the owners of what exists for one
/// example of them.
struct Chain {
  size_t first = 0, last = 0;
  std::set<BufferId> local;
};

class Choosing {
 public:
  Choosing(const Program& program, const loop::EntryPoint& entry, const TargetInfo& target)
      : program_(program),
        entry_(entry),
        costs_(band_costs(target)),
        grain_(target.parallel_grain) {
    for (const Step& step : entry.steps) {
      const bool call = step.kind == StepKind::call;
      kernels_.push_back(call ? match_examples(program.kernels.at(step.kernel), program.symbols)
                              : std::nullopt);
      work_.push_back(kernels_.back() ? work_of(step, *kernels_.back()) : Work());
    }
    users_.resize(program.buffers.size());
    for (const loop::EntryPoint& any : program.entries) {
      for (size_t s = 0; s < any.steps.size(); ++s) {
        loop::for_each_buffer(any.steps[s], [&](BufferId id) {
          users_[static_cast<size_t>(program.owner(id))].insert(&any == &entry ? s : SIZE_MAX);
        });
      }
    }
  }

  std::vector<Chain> run() {
    for (size_t first = 0; first < kernels_.size(); ++first) {
      if (!kernels_[first] || !is_batch(kernels_[first]->examples)) continue;
      size_t last = first;
      while (last + 1 < kernels_.size() && kernels_[last + 1] &&
             kernels_[last + 1]->examples == kernels_[first]->examples) {
        ++last;
      }
      choose(first, last);
      first = last;
    }
    return std::move(chains_);
  }

  const ExampleKernel& kernel(size_t step) const { return *kernels_[step]; }

 private:
  /// Of one example; cycles and bytes.
  struct Work {
    double arithmetic = 0;
    int64_t weights = 0;  // read alike for all examples
  };

  /// Inputs and outputs have it for their outermost dimension.
  bool is_batch(const Dim& examples) const {
    const auto leads = [&](BufferId id) {
      const Dims& shape = program_.buffer(id).shape;
      return !shape.empty() && shape[0] == examples;
    };
    return std::any_of(entry_.inputs.begin(), entry_.inputs.end(), leads) &&
           std::any_of(entry_.outputs.begin(), entry_.outputs.end(), leads);
  }

  Work work_of(const Step& step, const ExampleKernel& kernel) const {
    const loop::Definition& one = *loop::only_definition(kernel.one);
    const int64_t operations = std::max<int64_t>(cost(one).total(), 1);
    Work work;
    // A multiplication and an addition are one.
    work.arithmetic =
        static_cast<double>(points(one, program_.symbols) * operations) / 2 / costs_.macs_per_cycle;
    for (size_t i = 0; i < step.buffers.size(); ++i) {
      if (!kernel.apart.contains(i)) work.weights += program_.storage_bytes(step.buffers[i]);
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
    while (first < last && added(first, far) > most) ++first;
    while (first < last && added(last, far) > most) --last;
    if (first >= last) return;
    size_t worst = first;
    double all = 0;
    for (size_t s = first; s <= last; ++s) {
      all += added(s, far);
      if (added(s, far) > added(worst, far)) worst = s;
    }
    if (all > kMostAdded * arithmetic(first, last)) {
      if (worst > first) choose(first, worst - 1);
      if (worst < last) choose(worst + 1, last);
      return;
    }
    std::optional<Chain> chain = chain_of(first, last);
    if (!chain) {
      choose(first, last - 1);
    } else if (!chain->local.empty() && is_shared(first, last)) {
      chains_.push_back(*std::move(chain));
    }
  }

  /// Whether several threads find enough in single examples.
  bool is_shared(size_t first, size_t last) const {
    int64_t shared = 0, all = 0;
    for (size_t s = first; s <= last; ++s) {
      const int64_t macs = kernels_[s]->one.macs;
      all += macs;
      if (2 * macs >= grain_) shared += macs;
    }
    return static_cast<double>(shared) >= kLeastShared * static_cast<double>(all);
  }

  /// How steps use a storage.
  struct Use {
    bool written = false, whole = false, apart = false, fits = true;
    Dim elements;  // of an example
  };

  /// Nothing where an example needs something of another one, or its part is none of its owner's.
  std::optional<Chain> chain_of(size_t first, size_t last) const {
    std::map<BufferId, Use> uses;
    for (size_t s = first; s <= last; ++s) {
      const Step& step = entry_.steps[s];
      const Kernel& kernel = program_.kernels.at(step.kernel);
      for (size_t i = 0; i < step.buffers.size(); ++i) {
        const BufferId id = step.buffers[i], owner = program_.owner(id);
        const Buffer& buffer = program_.buffer(id);
        Use& use = uses[owner];
        use.written = use.written || kernel.buffers[i].mode != AccessMode::read;
        if (!kernels_[s]->apart.contains(i)) {
          use.whole = true;
          continue;
        }
        Dim elements(1);
        for (size_t d = 1; d < buffer.shape.size(); ++d) elements = elements * buffer.shape[d];
        use.fits = use.fits && buffer.shape == kernel.buffers[i].shape &&
                   buffer.element == program_.buffer(owner).element &&
                   loop::byte_offset(program_, id) == Dim(0) &&
                   (!use.apart || use.elements == elements);
        use.apart = true;
        use.elements = elements;
      }
    }
    Chain chain{first, last, {}};
    for (const auto& [owner, use] : uses) {
      if (!use.written) continue;
      const BufferClass kind = program_.buffer(owner).kind;
      if (use.whole || !use.fits || entry_.optional_outputs.contains(owner) ||
          entry_.extents.contains(owner) ||
          (kind != BufferClass::arena && kind != BufferClass::output)) {
        return std::nullopt;
      }
      const std::set<size_t>& users = users_[static_cast<size_t>(owner)];
      if (kind == BufferClass::arena && *users.begin() >= first && *users.rbegin() <= last) {
        chain.local.insert(owner);
      }
    }
    return chain;
  }

  const Program& program_;
  const loop::EntryPoint& entry_;
  const BandCosts costs_;
  const int64_t grain_;
  std::vector<std::optional<ExampleKernel>> kernels_;  // per step
  std::vector<Work> work_;                             // per step
  std::vector<std::set<size_t>> users_;                // per owner: steps that name it
  std::vector<Chain> chains_;
};

/// Writes the loop of one chain.
class Writing {
 public:
  Writing(Program& program, const Choosing& choosing, const Chain& chain)
      : program_(program), choosing_(choosing), chain_(chain) {}

  Step run(const std::vector<Step>& steps) {
    Step loop;
    loop.kind = StepKind::loop;
    loop.count = choosing_.kernel(chain_.first).examples;
    loop.symbol = loop::add_symbol(
        program_, "example", {0, std::max<int64_t>(loop.count.range(program_.symbols).max, 1) - 1});
    loop.buffers = {-1, -1};
    loop.loc = steps[chain_.last].loc;
    example_ = Dim::symbol(loop.symbol);
    for (size_t s = chain_.first; s <= chain_.last; ++s) loop.body.push_back(of_one(steps[s], s));
    return loop;
  }

 private:
  Step of_one(Step step, size_t s) {
    const ExampleKernel& kernel = choosing_.kernel(s);
    std::vector<Dim> sizes;
    const std::vector<std::string>& all = program_.kernels.at(step.kernel).sizes;
    for (const std::string& size : kernel.one.sizes) {
      sizes.push_back(
          step.sizes[static_cast<size_t>(std::find(all.begin(), all.end(), size) - all.begin())]);
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
    Dims shape = program_.buffer(id).shape;
    shape[0] = Dim(1);
    if (!chain_.local.contains(owner)) {
      Dim elements(1);
      for (const Dim& extent : shape) elements = elements * extent;
      return parts_[id] = add_part(program_, id, shape, example_ * elements);
    }
    if (id != owner) return parts_[id] = add_part(program_, part(owner), shape, Dim(0));
    Buffer one = program_.buffer(id);
    one.shape = shape;
    const std::string name = one.name + "_one";
    return parts_[id] = loop::add_buffer(program_, name, std::move(one));
  }

  Program& program_;
  const Choosing& choosing_;
  const Chain& chain_;
  Dim example_;
  std::map<BufferId, BufferId> parts_;
};

}  // namespace

Program example_loops(const Program& program, const TargetInfo& target, std::string* summary) {
  if (loop::writes_state(program)) return program;
  Program result = program;
  size_t all = 0, looped = 0;
  for (size_t e = 0; e < program.entries.size(); ++e) {
    const std::vector<Step>& steps = program.entries[e].steps;
    Choosing choosing(program, program.entries[e], target);
    std::vector<Step> written;
    size_t next = 0;
    for (const Chain& chain : choosing.run()) {
      written.insert(written.end(), steps.begin() + static_cast<std::ptrdiff_t>(next),
                     steps.begin() + static_cast<std::ptrdiff_t>(chain.first));
      written.push_back(Writing(result, choosing, chain).run(steps));
      next = chain.last + 1;
      looped += chain.last - chain.first + 1;
    }
    written.insert(written.end(), steps.begin() + static_cast<std::ptrdiff_t>(next), steps.end());
    result.entries[e].steps = std::move(written);
    all += steps.size();
  }
  loop::drop_uncalled(result);
  if (summary != nullptr && looped > 0) {
    *summary = fmt::format("computes {} of {} steps example by example", looped, all);
  }
  return result;
}

}  // namespace backcast
