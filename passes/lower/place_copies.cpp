// See place_copies.h. Only copies of control flow are looked at: those inside of loops and
// branches, and those to what is written inside.
#include "passes/lower/place_copies.h"

#include <algorithm>

#include "ir/loop/liveness.h"
#include "ir/loop/step_access.h"

namespace backcast {
namespace {

using loop::Buffer;
using loop::BufferClass;
using loop::BufferId;
using loop::Program;
using loop::Step;
using loop::StepKind;

struct Access {
  std::set<BufferId> reads, writes;  // owners
  bool touches(BufferId id) const { return reads.contains(id) || writes.contains(id); }
};

/// How often each owner is an operand of the steps, nested ones included.
void count_uses(const Program& program, const std::vector<Step>& steps,
                std::map<BufferId, int64_t>& uses) {
  for (const Step* step : loop::flat_steps(steps)) {
    for (const BufferId id : step->buffers) {
      if (id >= 0) ++uses[program.owner(id)];
    }
  }
}

class Placement {
 public:
  explicit Placement(const Program& program) : result_(program) {}

  Program run() {
    for (loop::EntryPoint& entry : result_.entries) count_uses(result_, entry.steps, uses_);
    for (loop::EntryPoint& entry : result_.entries) {
      entry_ = &entry;
      inner_writes_.clear();
      for (const Step& step : entry.steps) {
        if (step.body.empty() && step.otherwise.empty()) continue;
        for (const BufferId id : loop::written_buffers(result_, step)) inner_writes_.insert(id);
      }
      if (!inner_writes_.empty()) visit(entry.steps, false);
    }
    result_.update_view_classes();
    return std::move(result_);
  }

 private:
  void visit(std::vector<Step>& steps, bool nested) {
    for (Step& step : steps) {
      visit(step.body, true);
      visit(step.otherwise, true);
    }
    for (size_t k = 0; k < steps.size();) {
      if (steps[k].kind == StepKind::copy && place(steps, k, nested)) {
        steps.erase(steps.begin() + static_cast<int64_t>(k));
      } else {
        ++k;
      }
    }
  }

  /// Makes the source of copy k a part of its target; false when that is not possible.
  bool place(const std::vector<Step>& steps, size_t k, bool nested) {
    const BufferId from = steps[k].buffers[0], to = steps[k].buffers[1];
    const BufferId target = result_.owner(to);
    if (!nested && !inner_writes_.contains(target)) return false;
    if (!may_move(from, to, target)) return false;
    std::map<BufferId, int64_t> here;
    count_uses(result_, steps, here);
    if (here[from] != uses_[from]) return false;
    if (!is_free(steps, k, from, to, target)) return false;
    Buffer& moved = result_.buffers[static_cast<size_t>(from)];
    moved.view_of = to;
    moved.view_offset = 0;
    uses_[target] += uses_[from] - 2;
    return true;
  }

  bool may_move(BufferId from, BufferId to, BufferId target) const {
    const Buffer& source = result_.buffer(from);
    const BufferClass kind = result_.buffer(target).kind;
    const bool place = kind == BufferClass::arena ||
                       (kind == BufferClass::output && !entry_->optional_outputs.contains(target));
    const TensorType type{source.element, source.shape};
    const TensorType wanted{result_.buffer(to).element, result_.buffer(to).shape};
    return place && source.view_of < 0 && source.kind == BufferClass::arena && from != target &&
           type.element == wanted.element && type.element_count() == wanted.element_count();
  }

  bool is_free(const std::vector<Step>& steps, size_t k, BufferId from, BufferId to,
               BufferId target) const {
    size_t first = steps.size(), last = 0;
    for (size_t s = 0; s < steps.size(); ++s) {
      if (!access(steps[s]).touches(from)) continue;
      first = std::min(first, s);
      last = s;
    }
    if (first >= k || access(steps[first]).reads.contains(from)) return false;
    for (size_t s = first; s <= last; ++s) {
      const Access used = access(steps[s]);
      if (s > k && (used.writes.contains(target) || used.writes.contains(from))) return false;
      if (s >= k || !used.touches(target) || is_apart(steps[s], to, target)) continue;
      if (s != first || used.writes.contains(target)) return false;
      if (!writes_over(steps[s], from, to, target)) return false;
    }
    return true;
  }

  Access access(const Step& step) const {
    return {loop::read_buffers(result_, step), loop::written_buffers(result_, step)};
  }

  /// Whether the step's kernel may write `from` where it reads `to`, the only part of `target` it
  /// reads.
  bool writes_over(const Step& step, BufferId from, BufferId to, BufferId target) const {
    if (step.kind != StepKind::call) return false;
    const loop::Kernel& kernel = result_.kernels.at(step.kernel);
    const std::vector<std::string>* over = nullptr;
    std::string read;
    int64_t reads = 0;
    for (size_t i = 0; i < step.buffers.size(); ++i) {
      const BufferId id = step.buffers[i];
      if (id == from) over = &kernel.buffers[i].over;
      if (result_.owner(id) != target) continue;
      ++reads;
      if (is_at(id, to)) read = kernel.buffers[i].name;
    }
    return over != nullptr && reads == 1 && !read.empty() &&
           std::find(over->begin(), over->end(), read) != over->end();
  }

  /// Whether a step sees none of the elements of `to` in its storage.
  bool is_apart(const Step& step, BufferId to, BufferId target) const {
    if (!step.body.empty() || !step.otherwise.empty()) return false;
    const auto elements = [&](BufferId id) {
      return TensorType{result_.buffer(id).element, result_.buffer(id).shape}.element_count();
    };
    return std::all_of(step.buffers.begin(), step.buffers.end(), [&](BufferId id) {
      if (id < 0 || result_.owner(id) != target) return true;
      const Dim distance = offset_of(id) - offset_of(to);
      if (!distance.is_constant() || !elements(id).is_constant()) return false;
      return distance.constant() >= result_.storage_bytes(to) ||
             -distance.constant() >= result_.storage_bytes(id);
    });
  }

  /// Whether two parts of one storage begin at the same place.
  bool is_at(BufferId a, BufferId b) const { return offset_of(a) == offset_of(b); }
  Dim offset_of(BufferId id) const { return loop::byte_offset(result_, id); }

  Program result_;
  const loop::EntryPoint* entry_ = nullptr;
  std::map<BufferId, int64_t> uses_;
  std::set<BufferId> inner_writes_;
};

}  // namespace

Program place_copies(const Program& program) { return Placement(program).run(); }

}  // namespace backcast
