#include "passes/plan/update_in_place.h"

#include <algorithm>
#include <queue>
#include <set>

#include "ir/loop/step_access.h"

namespace backcast {
namespace {

using loop::AccessMode;
using loop::BufferClass;
using loop::BufferId;
using loop::Program;
using loop::Step;
using loop::StepKind;

/// The storages that a step, or what is nested in it, reads and writes.
struct Accesses {
  std::set<BufferId> reads, writes;
};

/// One entry point: its steps, who must precede whom, and the updates found legal so far.
class InPlace {
 public:
  InPlace(Program& program, size_t entry) : program_(program), entry_(entry) {
    advance_copies();
    for (const Step& step : steps()) {
      accesses_.push_back(
          {loop::read_buffers(program_, step), loop::written_buffers(program_, step)});
    }
    successors_.resize(steps().size());
    dropped_.assign(steps().size(), false);
    early_.assign(steps().size(), false);
    add_dependences();
  }

  void run() {
    for (size_t i = 0; i < steps().size(); ++i) {
      if (is_update(i) && !try_shifted(i)) try_in_place(i);
      early_[i] = early_[i] || leaves_arena(steps()[i]);
    }
    reorder();
  }

 private:
  /// What goes to the caller, and a part that is kept, need not wait in the arena.
  bool leaves_arena(const Step& step) {
    if (step.kind != StepKind::copy) return false;
    const loop::Buffer& from = buffer(step.buffers[0]);
    const BufferClass to = buffer(step.buffers[1]).kind;
    return to == BufferClass::output || (to == BufferClass::state && from.view_of >= 0);
  }

  std::vector<Step>& steps() { return program_.entries[entry_].steps; }
  loop::Buffer& buffer(BufferId id) { return program_.buffers[static_cast<size_t>(id)]; }

  /// Parts of storages that are copied of a state are copied before others are computed.
  void advance_copies() {
    for (size_t i = 1; i < steps().size(); ++i) {
      const Step copy = steps()[i];
      if (copy.kind != StepKind::copy) continue;
      const BufferId state = program_.owner(copy.buffers[0]);
      const BufferId value = program_.owner(copy.buffers[1]);
      if (buffer(state).kind != BufferClass::state || buffer(value).kind != BufferClass::arena) {
        continue;
      }
      size_t to = i;
      for (size_t k = i; k-- > 0;) {
        if (loop::written_buffers(program_, steps()[k]).contains(state)) break;
        if (!apart(steps()[k], value, copy.buffers[1])) break;
        const bool computed = steps()[k].kind != StepKind::copy;
        if (computed && loop::written_buffers(program_, steps()[k]).contains(value)) to = k;
      }
      std::rotate(steps().begin() + static_cast<int64_t>(to),
                  steps().begin() + static_cast<int64_t>(i),
                  steps().begin() + static_cast<int64_t>(i) + 1);
    }
  }

  /// Whether the step touches other bytes of the storage than the part has.
  bool apart(const Step& step, BufferId storage, BufferId part) {
    bool is_apart = true;
    const auto range = [&](BufferId id) {
      const Dim begin = loop::byte_offset(program_, id);
      const int64_t first = begin.is_constant() ? begin.constant() : 0;
      const bool known = begin.is_constant() && is_static(buffer(id).shape);
      return std::pair(first, known ? first + program_.storage_bytes(id) : INT64_MAX);
    };
    const auto [begin, end] = range(part);
    loop::for_each_buffer(step, [&](BufferId id) {
      if (program_.owner(id) != storage) return;
      const auto [other_begin, other_end] = range(id);
      is_apart = is_apart && (other_end <= begin || end <= other_begin);
    });
    return is_apart;
  }

  bool writes_state(size_t step) {
    const std::set<BufferId>& writes = accesses_[step].writes;
    return std::any_of(writes.begin(), writes.end(),
                       [&](BufferId id) { return buffer(id).kind == BufferClass::state; });
  }

  static bool meets(const std::set<BufferId>& a, const std::set<BufferId>& b) {
    return std::any_of(a.begin(), a.end(), [&](BufferId id) { return b.contains(id); });
  }

  void add_dependences() {
    for (size_t late = 0; late < steps().size(); ++late) {
      for (size_t early = 0; early < late; ++early) {
        const Accesses &a = accesses_[early], &b = accesses_[late];
        const bool checks = steps()[early].kind == StepKind::check_finite;
        if (meets(a.writes, b.reads) || meets(a.reads, b.writes) || meets(a.writes, b.writes) ||
            (checks && (writes_state(late) || steps()[late].kind == StepKind::check_finite))) {
          successors_[early].insert(late);
        }
      }
    }
  }

  /// A copy of a whole arena storage to a state variable.
  bool is_update(size_t i) {
    const Step& step = steps()[i];
    return step.kind == StepKind::copy && buffer(step.buffers[0]).kind == BufferClass::arena &&
           buffer(step.buffers[0]).view_of < 0 &&
           buffer(step.buffers[1]).kind == BufferClass::state &&
           buffer(step.buffers[1]).view_of < 0;
  }

  /// The only step that writes the storage, a call whose every access goes through one parameter;
  /// -1 when there is none.
  int64_t producer(BufferId storage) {
    int64_t found = -1;
    for (size_t i = 0; i < steps().size(); ++i) {
      if (!accesses_[i].writes.contains(storage)) continue;
      if (found >= 0 || steps()[i].kind != StepKind::call) return -1;
      found = static_cast<int64_t>(i);
    }
    return found;
  }

  /// Whether the kernel of call `i` may find the old value of `state` where it writes `value`.
  bool may_write_over(size_t i, BufferId value, BufferId state) {
    const Step& step = steps()[i];
    const loop::Kernel& kernel = program_.kernels.at(step.kernel);
    const std::vector<std::string>* over = nullptr;
    for (size_t p = 0; p < step.buffers.size(); ++p) {
      if (step.buffers[p] == value) over = &kernel.buffers[p].over;
    }
    if (over == nullptr) return false;  // written through a view of it
    int64_t uses = 0;
    for (size_t p = 0; p < step.buffers.size(); ++p) {
      if (program_.owner(step.buffers[p]) != state) continue;
      const std::string& name = kernel.buffers[p].name;
      if (std::find(over->begin(), over->end(), name) == over->end()) return false;
      ++uses;
    }
    return uses <= 1;
  }

  /// Rows that move up while new ones come in behind them: `value` is written by a copy of what the
  /// state has, then by others that do not look at it.
  bool try_shifted(size_t copy) {
    const BufferId value = steps()[copy].buffers[0], state = steps()[copy].buffers[1];
    std::vector<size_t> writers;
    for (size_t i = 0; i < copy; ++i) {
      const Accesses& a = accesses_[i];
      if (steps()[i].kind == StepKind::check_finite || a.writes.contains(state)) return false;
      if (a.writes.contains(value)) writers.push_back(i);
      const bool shifts = a.writes.contains(value) && writers.size() == 1;
      if (a.reads.contains(state) && !(shifts && steps()[i].kind == StepKind::copy)) return false;
    }
    if (writers.size() < 2 || !accesses_[writers[0]].reads.contains(state)) return false;
    for (size_t i = copy + 1; i < steps().size(); ++i) {
      if (accesses_[i].writes.contains(state) || accesses_[i].writes.contains(value)) return false;
    }
    drop(copy, writers);
    return true;
  }

  /// The state's new value is where the old one was: what comes behind `copy` comes behind those
  /// who write it.
  void drop(size_t copy, const std::vector<size_t>& writers) {
    const BufferId value = steps()[copy].buffers[0], state = steps()[copy].buffers[1];
    for (const size_t writer : writers) {
      for (size_t next : successors_[copy]) successors_[writer].insert(next);
    }
    dropped_[copy] = true;
    buffer(value).view_of = state;
    buffer(value).view_offset = 0;
    buffer(value).kind = BufferClass::state;
  }

  void try_in_place(size_t copy) {
    const BufferId value = steps()[copy].buffers[0], state = steps()[copy].buffers[1];
    const int64_t found = producer(value);
    if (found < 0) return;
    const size_t update = static_cast<size_t>(found);
    if (!may_write_over(update, value, state)) return;
    // Whoever reads the old value, and every check, goes first.
    std::vector<size_t> before;
    for (size_t i = 0; i < steps().size(); ++i) {
      if (i == update || i == copy || dropped_[i]) continue;
      const bool checks = steps()[i].kind == StepKind::check_finite;
      if (accesses_[i].reads.contains(state) || checks) before.push_back(i);
      if (accesses_[i].writes.contains(state)) return;  // written twice
    }
    const std::vector<char> behind = reachable(update);
    for (size_t i : before) {
      if (behind[i]) return;
    }
    for (size_t i : before) successors_[i].insert(update);
    early_[update] = true;
    drop(copy, {update});
  }

  std::vector<char> reachable(size_t from) {
    std::vector<char> seen(steps().size(), 0);
    std::vector<size_t> open{from};
    while (!open.empty()) {
      const size_t at = open.back();
      open.pop_back();
      for (size_t next : successors_[at]) {
        if (seen[next]) continue;
        seen[next] = 1;
        open.push_back(next);
      }
    }
    return seen;
  }

  /// In the old order, but updates as soon as they can.
  void reorder() {
    std::vector<int64_t> waits(steps().size(), 0);
    for (const std::set<size_t>& successors : successors_) {
      for (size_t next : successors) ++waits[next];
    }
    using Key = std::pair<int, size_t>;
    std::priority_queue<Key, std::vector<Key>, std::greater<>> ready;
    const auto offer = [&](size_t i) { ready.emplace(early_[i] ? 0 : 1, i); };
    for (size_t i = 0; i < steps().size(); ++i) {
      if (waits[i] == 0) offer(i);
    }
    std::vector<Step> ordered;
    while (!ready.empty()) {
      const size_t i = ready.top().second;
      ready.pop();
      if (!dropped_[i]) ordered.push_back(steps()[i]);
      for (size_t next : successors_[i]) {
        if (--waits[next] == 0) offer(next);
      }
    }
    steps() = std::move(ordered);
  }

  Program& program_;
  size_t entry_;
  std::vector<Accesses> accesses_;
  std::vector<std::set<size_t>> successors_;
  std::vector<char> dropped_, early_;
};

}  // namespace

loop::Program update_in_place(const loop::Program& program) {
  Program result = program;
  for (size_t entry = 0; entry < result.entries.size(); ++entry) {
    if (result.states().empty()) break;
    InPlace(result, entry).run();
  }
  result.update_view_classes();
  return result;
}

}  // namespace backcast
