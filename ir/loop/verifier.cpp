// Programs: buffers, views, calls, the arena's plan.
#include "ir/loop/verifier.h"

#include <algorithm>
#include <set>

#include "ir/graph/error.h"
#include "ir/loop/liveness.h"
#include "ir/loop/overlap.h"
#include "ir/loop/step_access.h"
#include "ir/loop/verify_kernel.h"
#include "ir/loop/verify_reads.h"
#include "ir/loop/verify_state.h"

namespace backcast::loop {
namespace {

/// Legalised kernels see half floats as the u16 they are stored in.
Scalar bit_pattern(Scalar s) { return is_half(s) ? Scalar::u16 : s; }

Dim count_of(const Dims& shape) {
  Dim count = 1;
  for (const Dim& extent : shape) count = count * extent;
  return count;
}

class ProgramChecker {
 public:
  ProgramChecker(const Program& program, std::string_view after)
      : program_(program), after_(after) {}

  /// All but the text of kernels.
  void run() {
    check_buffers();
    loop_symbols_ = loop_symbols(program_);
    for (const auto& [name, function] : program_.functions) {
      if (function.name != name) fail("function " + function.name + " is listed as " + name);
      verify_function(function, program_.functions, after_);
    }
    for (const auto& [name, kernel] : program_.kernels) {
      if (kernel.name != name) fail("kernel " + kernel.name + " is listed as " + name);
    }
    std::set<std::string> names;
    for (const EntryPoint& entry : program_.entries) {
      if (!names.insert(entry.name).second) fail("a second entry point " + entry.name);
      check_entry(entry);
      check_plan(entry);
    }
    verify_state(program_, after_);
  }

 private:
  [[noreturn]] void fail(const std::string& message) const {
    verification_error(after_, "program " + program_.name, message);
  }

  bool is_buffer(BufferId id) const {
    return id >= 0 && id < static_cast<BufferId>(program_.buffers.size());
  }
  const Buffer& buffer(BufferId id) const { return program_.buffer(id); }

  void check_buffers() const {
    std::set<std::string> names;
    for (size_t i = 0; i < program_.buffers.size(); ++i) {
      const Buffer& b = program_.buffers[i];
      if (!names.insert(b.name).second) fail("a second buffer " + b.name);
      if (b.view_of >= 0) {
        check_view(static_cast<BufferId>(i));
      } else if (b.kind == BufferClass::constant) {
        const Dim bytes = count_of(b.shape) * byte_size(b.element);
        if (!(bytes == Dim(static_cast<int64_t>(b.value.bytes().size())))) {
          fail("the value of constant " + b.name + " does not fit its type");
        }
      }
      if (b.alignment < 0 || (b.alignment & (b.alignment - 1)) != 0) {
        fail("the alignment of " + b.name + " is no power of two");
      }
    }
  }

  void check_view(BufferId id) const {
    const Buffer& view = buffer(id);
    if (!is_buffer(view.view_of)) fail("view " + view.name + " is of no buffer");
    const Buffer& whole = buffer(view.view_of);
    program_.owner(id);  // ends
    // Wider integers, from the beginning: words of a tensor.
    const bool words = is_integer(whole.element) && is_integer(view.element) &&
                       byte_size(view.element) > byte_size(whole.element) &&
                       view.view_offset == Dim(0);
    if (whole.element != view.element && !words) {
      fail("view " + view.name + " has another element type");
    }
    if (view.kind != whole.kind) fail("view " + view.name + " has another class");
    const Dim room = (count_of(whole.shape) - view.view_offset) * byte_size(whole.element) -
                     count_of(view.shape) * byte_size(view.element);
    const DimRange start = view.view_offset.range(program_.symbols);
    // Only what is wrong for sure: symbols may relate in ways that ranges do not show.
    if (start.max < 0 || room.range(program_.symbols).max < 0) {
      fail("view " + view.name + " leaves " + whole.name);
    }
  }

  void check_entry(const EntryPoint& entry) {
    for (const std::vector<BufferId>* list : {&entry.inputs, &entry.outputs}) {
      for (const BufferId id : *list) {
        if (!is_buffer(id)) fail("entry " + entry.name + " names no buffer");
      }
    }
    std::set<std::string> bound;
    check_steps(entry, entry.steps, bound);
  }

  /// `bound`: the symbols of the loops around.
  void check_steps(const EntryPoint& entry, const std::vector<Step>& steps,
                   std::set<std::string>& bound) {
    for (const Step& step : steps) {
      for (const BufferId id : step.buffers) {
        const bool absent = id == -1 && step.kind == StepKind::loop;
        if (!is_buffer(id) && !absent) fail("a step of " + entry.name + " names no buffer");
        if (!absent) check_bound(id, bound);
      }
      if (step.kind == StepKind::copy) check_copy(step);
      if (step.kind == StepKind::call) check_call(step);
      if (step.kind == StepKind::loop) check_loop(step);
      if (step.kind == StepKind::branch) {
        if (step.buffers.size() != 1) fail("a branch needs one condition");
        check_scalar(step.buffers[0], ElementType::boolean, "the condition of a branch");
      }
      if (step.kind != StepKind::loop) {
        check_steps(entry, step.body, bound);
        check_steps(entry, step.otherwise, bound);
        continue;
      }
      if (!bound.insert(step.symbol).second) fail("loops in one another bind " + step.symbol);
      check_steps(entry, step.body, bound);
      bound.erase(step.symbol);
    }
  }

  /// A view that moves with a loop is used inside of this loop only.
  void check_bound(BufferId id, const std::set<std::string>& bound) {
    if (loop_symbols_.empty()) return;
    for (; buffer(id).view_of >= 0; id = buffer(id).view_of) {
      std::set<std::string> symbols;
      buffer(id).view_offset.collect_symbols(symbols);
      for (const std::string& symbol : symbols) {
        if (loop_symbols_.contains(symbol) && !bound.contains(symbol)) {
          fail("view " + buffer(id).name + " is used outside of the loop over " + symbol);
        }
      }
    }
  }

  void check_scalar(BufferId id, ElementType element, const std::string& what) const {
    const Buffer& b = buffer(id);
    if (b.element != element || !(count_of(b.shape) == Dim(1))) {
      fail(fmt::format("{} is {}, which is no scalar of {}", what, b.name, name_of(element)));
    }
  }

  void check_loop(const Step& step) const {
    if (step.buffers.size() != 2) fail("a loop needs its number of trips and its condition");
    if (step.buffers[0] >= 0) check_scalar(step.buffers[0], ElementType::i64, "a number of trips");
    if (step.buffers[1] >= 0) {
      check_scalar(step.buffers[1], ElementType::boolean, "the condition of a loop");
    }
    const auto range = program_.symbols.find(step.symbol);
    const int64_t most = step.count.range(program_.symbols).max;
    if (range == program_.symbols.end() || range->second.min > 0 || range->second.max < most - 1) {
      fail("the range of " + step.symbol + " is not that of its loop");
    }
    if (step.reverse && step.buffers[1] >= 0) fail("a loop in reverse cannot have a condition");
  }

  void check_written(BufferId id, const std::string& by) const {
    const BufferClass kind = buffer(program_.owner(id)).kind;
    if (kind == BufferClass::constant || kind == BufferClass::input) {
      fail(buffer(id).name + " is written by " + by);
    }
  }

  /// Whether two counts differ for sure.
  static bool differ(const Dim& a, const Dim& b) {
    const Dim difference = a - b;
    return difference.is_constant() && difference.constant() != 0;
  }

  void check_copy(const Step& step) const {
    if (step.buffers.size() != 2) fail("a copy of " + std::to_string(step.buffers.size()));
    const Buffer& from = buffer(step.buffers[0]);
    const Buffer& to = buffer(step.buffers[1]);
    if (from.element != to.element || differ(count_of(from.shape), count_of(to.shape))) {
      fail("a copy from " + from.name + " to " + to.name + ", which differ in type");
    }
    check_written(step.buffers[1], "a copy");
  }

  void check_call(const Step& step) const {
    const auto found = program_.kernels.find(step.kernel);
    if (found == program_.kernels.end()) fail("a call of " + step.kernel + ", which is no kernel");
    const Kernel& kernel = found->second;
    const std::string where = "a call of " + kernel.name;
    if (step.buffers.size() != kernel.buffers.size() || step.sizes.size() != kernel.sizes.size()) {
      fail(fmt::format("{} with {} buffers and {} sizes for {} and {}", where, step.buffers.size(),
                       step.sizes.size(), kernel.buffers.size(), kernel.sizes.size()));
    }
    if (step.grain < 0) fail(where + ": a negative grain");
    if (step.grain > 0 && (step.sizes.size() < 2 || step.sizes.end()[-2] != Dim(0))) {
      fail(where + ": a grain without a range of iterations, which starts at 0");
    }
    std::map<std::string, Dim> sizes;
    for (size_t i = 0; i < step.sizes.size(); ++i) sizes[kernel.sizes[i]] = step.sizes[i];
    for (size_t i = 0; i < step.buffers.size(); ++i) {
      const BufferParam& param = kernel.buffers[i];
      const Buffer& argument = buffer(step.buffers[i]);
      if (bit_pattern(scalar_of(argument.element)) != bit_pattern(param.element)) {
        fail(where + ": " + argument.name + " has another element type than " + param.name);
      }
      if (differ(count_of(param.shape).substitute(sizes), count_of(argument.shape))) {
        fail(fmt::format("{}: {} has the shape {}, {} has {}", where, argument.name,
                         to_string(argument.shape), param.name, to_string(param.shape)));
      }
      if (param.mode != AccessMode::read) check_written(step.buffers[i], "kernel " + kernel.name);
    }
  }

  // ---- the plan

  struct Placed {
    BufferId id = 0;
    int64_t first = INT64_MAX, last = -1;  // steps
    int64_t begin = 0, end = 0;            // bytes
  };

  std::vector<Placed> placed_buffers(const EntryPoint& entry) const {
    const std::vector<LiveRange> ranges = live_ranges(program_, entry);
    std::vector<Placed> result;
    for (size_t i = 0; i < ranges.size(); ++i) {
      const Buffer& b = program_.buffers[i];
      const bool used = ranges[i].first <= ranges[i].last;
      if (!used || b.kind != BufferClass::arena || b.offset < 0) continue;
      const BufferId id = static_cast<BufferId>(i);
      result.push_back(
          {id, ranges[i].first, ranges[i].last, b.offset, b.offset + program_.storage_bytes(id)});
    }
    return result;
  }

  /// Whether `heir` begins where `old` ends, in a step whose kernel lets it take over the storage.
  bool takes_over(const std::vector<const Step*>& steps, const Placed& old,
                  const Placed& heir) const {
    if (old.last != heir.first || old.begin != heir.begin) return false;
    const Step& step = *steps[static_cast<size_t>(heir.first)];
    if (step.kind != StepKind::call) return false;
    const Kernel& kernel = program_.kernels.at(step.kernel);
    for (size_t i = 0; i < kernel.buffers.size(); ++i) {
      if (program_.owner(step.buffers[i]) != heir.id) continue;
      for (const size_t read : taken_over_by(kernel, i)) {
        if (program_.owner(step.buffers[read]) == old.id) return true;
      }
    }
    return false;
  }

  static bool is_kept(const std::optional<OverlapDistance>& distance, const Placed& old,
                      const Placed& heir) {
    return distance && (heir.begin + distance->read_above <= old.begin ||
                        old.begin + distance->written_above <= heir.begin);
  }

  /// Whether `heir` begins where the kernel's order of accesses lets it reach into `old`.
  bool reaches_into(const std::vector<const Step*>& steps, const Placed& old,
                    const Placed& heir) const {
    if (old.last != heir.first) return false;
    const Step& step = *steps[static_cast<size_t>(heir.first)];
    const std::optional<OverlapDistance> distance =
        overlap_distance(program_, step, old.id, heir.id);
    return is_kept(distance, old, heir);
  }

  /// Whether `heir`, which is written while `old` is still read, lies where that leaves it room.
  bool follows_behind(const EntryPoint& entry, const Placed& old, const Placed& heir) const {
    if (old.first >= heir.first || old.last >= heir.last) return false;
    const std::optional<OverlapDistance> distance =
        overlap_distance(program_, entry, heir.first, old.last, old.id, heir.id);
    return is_kept(distance, old, heir);
  }

  /// Whether the one may share bytes with the other while both live: they meet in one step, which
  /// is the end of the first, or in several.
  bool may_follow(const EntryPoint& entry, const std::vector<const Step*>& steps, const Placed& old,
                  const Placed& heir) const {
    if (heir.first < old.last) return follows_behind(entry, old, heir);
    if (!ends_at(entry, {old.first, old.last}, heir.first)) return false;
    return takes_over(steps, old, heir) || reaches_into(steps, old, heir);
  }

  void check_plan(const EntryPoint& entry) const {
    const std::vector<Placed> placed = placed_buffers(entry);
    const std::vector<const Step*> steps = flat_steps(entry.steps);
    for (const Placed& p : placed) {
      const Buffer& b = buffer(p.id);
      if (p.end > program_.arena_bytes) fail("buffer " + b.name + " lies outside of the arena");
      const int64_t alignment = std::max(b.alignment, byte_size(b.element));
      if (b.offset % alignment != 0) fail("buffer " + b.name + " is not aligned");
    }
    for (size_t i = 0; i < placed.size(); ++i) {
      for (size_t k = i + 1; k < placed.size(); ++k) {
        const Placed& a = placed[i];
        const Placed& b = placed[k];
        const bool together = a.first <= b.last && b.first <= a.last;
        const bool overlap = a.begin < b.end && b.begin < a.end;
        if (!together || !overlap) continue;
        if (may_follow(entry, steps, a, b) || may_follow(entry, steps, b, a)) continue;
        fail(fmt::format("entry {}: buffers {} and {} share bytes while both live", entry.name,
                         buffer(a.id).name, buffer(b.id).name));
      }
    }
  }

  const Program& program_;
  std::string_view after_;
  std::set<std::string> loop_symbols_;
};

/// Whether nothing differs that a kernel's text is verified by.
bool is_as_before(const Kernel& kernel, const Kernel& before) {
  return kernel.body.get() == before.body.get() && kernel.buffers == before.buffers &&
         kernel.sizes == before.sizes;
}

}  // namespace

void Verifier::forget_unless_same(const std::map<std::string, MathFunction>& functions) {
  const bool same =
      std::equal(functions.begin(), functions.end(), functions_.begin(), functions_.end(),
                 [](const auto& a, const auto& b) {
                   return a.first == b.first && a.second.result.get() == b.second.result.get();
                 });
  if (same) return;
  functions_ = functions;
  verified_.clear();
}

void Verifier::run(const Program& program, std::string_view after) {
  forget_unless_same(program.functions);
  for (const auto& [name, kernel] : program.kernels) {
    const auto before = verified_.find(name);
    if (before != verified_.end() && is_as_before(kernel, before->second)) continue;
    verify_kernel(kernel, program.functions, after);
    verified_[name] = kernel;
    read_first_[name] = read_first(kernel);
  }
  ProgramChecker(program, after).run();
  verify_reads(program, read_first_, after);
}

void verify(const Program& program, std::string_view after) { Verifier().run(program, after); }

void verify(const Kernel& kernel, std::string_view after) { verify_kernel(kernel, {}, after); }

}  // namespace backcast::loop
