#include "passes/plan/rematerialize.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "ir/loop/step_access.h"
#include "passes/lower/definition_cost.h"

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

// More arithmetic per element is worth its memory: exp, erf and their like count 8.
constexpr int64_t kMostCost = 7;
// Steps that hold at least this share of the peak are worth relieving.
constexpr double kHot = 0.75;
// Keeping operands alive for longer may cost this share of what is saved.
constexpr int64_t kExtension = 8;
constexpr int kMaxRounds = 500;

/// One entry point and what is live where.
class Entry {
 public:
  Entry(Program& program, size_t index) : program_(program), index_(index) {}

  void run() {
    for (int round = 0; round < kMaxRounds; ++round) {
      analyse();
      std::optional<Choice> best;
      for (size_t id = 0; id < program_.buffers.size(); ++id) {
        std::optional<Choice> choice = choose(static_cast<BufferId>(id));
        if (choice && (!best || choice->saved > best->saved)) best = choice;
      }
      if (!best) return;
      recompute(*best);
    }
  }

 private:
  struct Choice {
    BufferId value = -1;
    size_t producer = 0, use = 0;  // steps
    int64_t saved = 0;
  };

  std::vector<Step>& steps() { return program_.entries[index_].steps; }
  const Buffer& buffer(BufferId id) const { return program_.buffer(id); }

  void analyse() {
    uses_.assign(program_.buffers.size(), {});
    for (size_t s = 0; s < steps().size(); ++s) {
      loop::for_each_buffer(steps()[s], [&](BufferId& id) {
        std::vector<size_t>& uses = uses_[static_cast<size_t>(program_.owner(id))];
        if (uses.empty() || uses.back() != s) uses.push_back(s);
      });
    }
    std::vector<int64_t> change(steps().size() + 1, 0);
    for (size_t id = 0; id < uses_.size(); ++id) {
      if (uses_[id].empty() || program_.buffers[id].kind != BufferClass::arena) continue;
      const int64_t bytes = program_.storage_bytes(static_cast<BufferId>(id));
      change[uses_[id].front()] += bytes;
      change[uses_[id].back() + 1] -= bytes;
    }
    int64_t live = 0, peak = 0;
    std::vector<int64_t> at;
    for (size_t s = 0; s < steps().size(); ++s) {
      at.push_back(live += change[s]);
      peak = std::max(peak, live);
    }
    hot_before_.assign(1, 0);
    for (int64_t bytes : at) {
      const bool hot = static_cast<double>(bytes) >= kHot * static_cast<double>(peak);
      hot_before_.push_back(hot_before_.back() + (hot ? 1 : 0));
    }
  }

  /// Whether a step strictly between the two is hot.
  bool hot_between(size_t first, size_t last) const {
    return last > first + 1 && hot_before_[last] - hot_before_[first + 1] > 0;
  }

  /// A kernel that computes one result, element by element.
  bool is_elementwise(const Step& step) const {
    if (step.kind != StepKind::call) return false;
    const Kernel& kernel = program_.kernels.at(step.kernel);
    int64_t written = 0;
    for (const loop::BufferParam& param : kernel.buffers) {
      written += param.mode == AccessMode::write;
      if (param.mode == AccessMode::update) return false;
    }
    const loop::Definition* definition = loop::only_definition(kernel);
    return written == 1 && definition != nullptr && definition->accumulators.empty() &&
           cost(*definition).total() <= kMostCost;
  }

  std::optional<Choice> choose(BufferId value) const {
    const Buffer& b = buffer(value);
    const std::vector<size_t>& uses = uses_[static_cast<size_t>(value)];
    if (b.kind != BufferClass::arena || b.view_of >= 0 || uses.size() < 2) return {};
    const Step& producer = program_.entries[index_].steps[uses.front()];
    const int64_t bytes = program_.storage_bytes(value);
    // A copy was made for its first use: what stands in between are other copies for that step.
    for (size_t i = copies_.contains(value) ? 1 : 0; i + 1 < uses.size(); ++i) {
      if (!hot_between(uses[i], uses[i + 1])) continue;
      if (!writes(producer, value) || !is_elementwise(producer)) return {};
      // A place that a loop fills, or a carry: the producer alone does not make the value.
      if (written_between(value, uses.front(), uses.back() + 1)) return {};
      const int64_t extension = extension_for(producer, value, uses[i + 1]);
      if (extension < 0 || extension * kExtension > bytes) continue;
      return Choice{value, uses.front(), uses[i + 1], bytes - extension};
    }
    return {};
  }

  bool writes(const Step& step, BufferId value) const {
    if (step.kind != StepKind::call) return false;
    const Kernel& kernel = program_.kernels.at(step.kernel);
    for (size_t i = 0; i < step.buffers.size(); ++i) {
      if (kernel.buffers[i].mode == AccessMode::write) return step.buffers[i] == value;
    }
    return false;
  }

  /// Bytes that have to stay for longer so that the step can run again before step `at`; -1 when
  /// an operand is gone for good.
  int64_t extension_for(const Step& step, BufferId value, size_t at) const {
    int64_t extension = 0;
    for (BufferId id : step.buffers) {
      const BufferId owner = program_.owner(id);
      if (owner == value) continue;
      const BufferClass kind = buffer(owner).kind;
      if (kind == BufferClass::output) return -1;
      if (kind == BufferClass::state && written_between(owner, step_of(value), at)) return -1;
      if (kind != BufferClass::arena) continue;
      if (uses_[static_cast<size_t>(owner)].back() < at) extension += program_.storage_bytes(owner);
    }
    return extension;
  }

  size_t step_of(BufferId value) const { return uses_[static_cast<size_t>(value)].front(); }

  bool written_between(BufferId owner, size_t first, size_t last) const {
    const std::vector<Step>& all = program_.entries[index_].steps;
    for (size_t s = first + 1; s < last; ++s) {
      for (BufferId id : loop::written_buffers(program_, all[s])) {
        if (program_.owner(id) == owner) return true;
      }
    }
    return false;
  }

  void recompute(const Choice& choice) {
    std::map<BufferId, BufferId> again;
    const BufferId copy = duplicate(choice.value, -1);
    again[choice.value] = copy;
    copies_.insert(copy);
    Step step = steps()[choice.producer];
    for (BufferId& id : step.buffers) {
      if (id == choice.value) id = copy;
    }
    for (size_t s = choice.use; s < steps().size(); ++s) {
      loop::for_each_buffer(steps()[s], [&](BufferId& id) {
        if (program_.owner(id) == choice.value) id = renamed(id, again);
      });
    }
    steps().insert(steps().begin() + static_cast<int64_t>(choice.use), std::move(step));
  }

  /// The view of the new storage that corresponds to a view of the old one.
  BufferId renamed(BufferId id, std::map<BufferId, BufferId>& again) {
    const auto known = again.find(id);
    if (known != again.end()) return known->second;
    const BufferId onto = renamed(buffer(id).view_of, again);
    const BufferId copy = duplicate(id, onto);
    again[id] = copy;
    return copy;
  }

  BufferId duplicate(BufferId id, BufferId view_of) {
    Buffer copy = buffer(id);
    std::set<std::string> names;
    for (const Buffer& b : program_.buffers) names.insert(b.name);
    std::string name = copy.name + "_again";
    for (int i = 2; names.count(name); ++i) name = copy.name + "_again" + std::to_string(i);
    copy.name = name;
    copy.view_of = view_of;
    program_.buffers.push_back(std::move(copy));
    return static_cast<BufferId>(program_.buffers.size() - 1);
  }

  Program& program_;
  size_t index_;
  std::vector<std::vector<size_t>> uses_;  // steps that touch a storage, in order
  std::set<BufferId> copies_;
  std::vector<int64_t> hot_before_;  // how many of the first n steps are hot
};

}  // namespace

loop::Program rematerialize(const loop::Program& program) {
  Program result = program;
  if (result.states().empty()) return result;
  for (size_t entry = 0; entry < result.entries.size(); ++entry) Entry(result, entry).run();
  return result;
}

}  // namespace backcast
