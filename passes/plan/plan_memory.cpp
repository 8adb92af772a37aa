// In-place joins first, in step order; then placement (place_tightly.h). The bound is the largest
// sum of bytes live at one step.
#include "passes/plan/plan_memory.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "ir/graph/error.h"
#include "ir/loop/liveness.h"
#include "ir/loop/overlap.h"
#include "ir/loop/step_access.h"
#include "passes/plan/alternate_directions.h"
#include "passes/plan/place_tightly.h"

namespace backcast {
namespace {

using loop::AccessMode;
using loop::BufferClass;
using loop::BufferId;
using loop::LiveRange;
using loop::Program;

// Nodes of the search times buffers, about proportional to its time: a few seconds.
constexpr int64_t kSearchWork = 20'000'000;

/// A block of arena: one storage, or several that take over from one another.
struct Block {
  int64_t bytes = 0;
  int64_t first = 0, last = 0;
  std::vector<BufferId> members;
};

/// An overlap and the steps in which both blocks live.
struct Span {
  AllowedOverlap overlap;
  int64_t first = 0, last = 0;

  /// Whether a block would be in two overlaps at once.
  bool conflicts(const Span& other) const {
    if (first > other.last || other.first > last) return false;
    const auto is_one = [&](size_t b) {
      return b == other.overlap.lower || b == other.overlap.upper;
    };
    return is_one(overlap.lower) || is_one(overlap.upper);
  }
};

class Planner {
 public:
  Planner(const Program& program, const TargetInfo& target, const PlacementProgress& progress)
      : result_(program), progress_(progress) {
    alignment_ = std::max<int64_t>(target.vector_bits / 8, 8);
  }

  Program run() {
    forget_offsets();
    for (size_t e = 0; e < result_.entries.size(); ++e) {
      make_blocks(result_.entries[e]);
      place(problem(result_.entries[e]));
    }
    place_state();
    return std::move(result_);
  }

  /// Of the placement that run() made, entry by entry, in the order of steps.
  const std::vector<ReachingCall>& reaching() const { return reaching_; }

  int64_t bound(size_t entry) {
    forget_offsets();
    make_blocks(result_.entries[entry]);
    return least_bytes(problem(result_.entries[entry]));
  }

 private:
  void forget_offsets() {
    for (loop::Buffer& buffer : result_.buffers) {
      if (buffer.kind == BufferClass::arena) buffer.offset = -1;
    }
  }

  int64_t round_up(int64_t bytes) const {
    return (bytes + alignment_ - 1) / alignment_ * alignment_;
  }

  void make_blocks(const loop::EntryPoint& entry) {
    ranges_ = loop::live_ranges(result_, entry);
    block_of_.assign(result_.buffers.size(), -1);
    blocks_.clear();
    const std::vector<const loop::Step*> steps = loop::flat_steps(entry.steps);
    for (size_t s = 0; s < steps.size(); ++s) {
      const loop::Step& step = *steps[s];
      for (size_t i = 0; i < step.buffers.size(); ++i) {
        if (step.buffers[i] < 0) continue;
        BufferId id = result_.owner(step.buffers[i]);
        if (result_.buffer(id).kind != BufferClass::arena || block_of_[size_t(id)] >= 0) continue;
        int taken = takes_over(entry, step, i, static_cast<int64_t>(s));
        if (taken >= 0) {
          Block& block = blocks_[size_t(taken)];
          block.last = std::max(block.last, ranges_[size_t(id)].last);
          block.members.push_back(id);
          block_of_[size_t(id)] = taken;
          continue;
        }
        block_of_[size_t(id)] = static_cast<int>(blocks_.size());
        BC_CHECK(result_.buffer(id).offset < 0,
                 "buffer {} of the arena is used by two entry points", result_.buffer(id).name);
        const LiveRange& range = ranges_[size_t(id)];
        blocks_.push_back({round_up(result_.storage_bytes(id)), range.first, range.last, {id}});
      }
    }
  }

  /// Header, then parameters, statistics and the rest; whoever fills a vector is aligned to one.
  void place_state() {
    const std::vector<BufferId> states = result_.states();
    if (states.empty()) return;
    int64_t end = loop::kStateHeaderBytes;
    result_.state_alignment = 8;  // the header's 64-bit words
    for (const BufferId id : states) {
      loop::Buffer& buffer = result_.buffers[size_t(id)];
      const int64_t bytes = result_.storage_bytes(id);
      int64_t alignment = std::max(buffer.alignment, byte_size(buffer.element));
      if (bytes >= alignment_) alignment = std::max(alignment, alignment_);
      result_.state_alignment = std::max(result_.state_alignment, alignment);
      buffer.offset = (end + alignment - 1) / alignment * alignment;
      end = buffer.offset + bytes;
    }
    result_.state_bytes = (end + 7) / 8 * 8;
  }

  /// The block whose storage operand i of the step may take over: that of a read parameter that
  /// dies here; -1 when there is none.
  int takes_over(const loop::EntryPoint& entry, const loop::Step& step, size_t i,
                 int64_t at) const {
    if (step.kind != loop::StepKind::call) return -1;
    const loop::Kernel& kernel = result_.kernels.at(step.kernel);
    BufferId written = step.buffers[i];
    if (result_.buffer(written).view_of >= 0) return -1;
    for (const size_t j : loop::taken_over_by(kernel, i)) {
      BufferId read = step.buffers[j];
      BufferId owner = result_.owner(read);
      if (result_.buffer(owner).kind != BufferClass::arena || block_of_[size_t(owner)] < 0)
        continue;
      const Block& block = blocks_[size_t(block_of_[size_t(owner)])];
      bool whole = loop::byte_offset(result_, read) == Dim(0) &&
                   block.bytes >= result_.storage_bytes(written);
      // The operand's storage must reach the kernel through this parameter alone, and another
      // result, one that nobody reads, may have taken it over already.
      int64_t uses = std::count_if(step.buffers.begin(), step.buffers.end(), [&](BufferId b) {
        return b >= 0 && block_of_[size_t(result_.owner(b))] == block_of_[size_t(owner)];
      });
      const bool ends = loop::ends_at(entry, ranges_[size_t(owner)], at);
      if (ends && block.last == at && whole && uses == 1) return block_of_[size_t(owner)];
    }
    return -1;
  }

  PlacementProblem problem(const loop::EntryPoint& entry) {
    PlacementProblem problem;
    for (const Block& block : blocks_) {
      problem.buffers.push_back({block.first, block.last + 1, block.bytes, alignment_});
    }
    add_overlaps(entry, problem);
    return problem;
  }

  /// Overlaps of results with operands that end with the step, and of what several steps write with
  /// what they still read, where they lower the bound.
  void add_overlaps(const loop::EntryPoint& entry, PlacementProblem& problem) {
    const std::vector<const loop::Step*> steps = loop::flat_steps(entry.steps);
    std::vector<int64_t> live(steps.size(), 0);
    for (const Block& block : blocks_) {
      for (int64_t s = block.first; s <= block.last; ++s) live[size_t(s)] += block.bytes;
    }
    std::vector<std::vector<size_t>> begin(steps.size()), end(steps.size());
    for (size_t b = 0; b < blocks_.size(); ++b) {
      begin[size_t(blocks_[b].first)].push_back(b);
      end[size_t(blocks_[b].last)].push_back(b);
    }
    // From the fullest step down: what is below the level that was reached needs no overlap.
    std::vector<size_t> fullest(steps.size());
    std::iota(fullest.begin(), fullest.end(), size_t{0});
    std::stable_sort(fullest.begin(), fullest.end(),
                     [&](size_t a, size_t b) { return live[a] > live[b]; });
    int64_t level = 0;
    std::map<size_t, ReachingCall> calls;  // by step
    const std::vector<Span> spans = overlaps_of_loops(entry);
    std::vector<Span> taken;
    for (const size_t s : fullest) {
      if (live[s] <= level) break;
      const auto holds = [&](const Span& span) {
        return span.first <= int64_t(s) && int64_t(s) <= span.last;
      };
      if (const auto known = std::find_if(taken.begin(), taken.end(), holds);
          known != taken.end()) {
        level = std::max(level, live[s] - saving(known->overlap));
        continue;
      }
      AllowedOverlap best;
      int64_t saved = 0;
      const Span* span = nullptr;
      for (const Span& candidate : spans) {
        if (!holds(candidate) || saving(candidate.overlap) <= saved) continue;
        if (std::any_of(taken.begin(), taken.end(),
                        [&](const Span& other) { return candidate.conflicts(other); })) {
          continue;
        }
        saved = saving(candidate.overlap);
        best = candidate.overlap;
        span = &candidate;
      }
      for (const size_t written : begin[s]) {
        for (const size_t read : end[s]) {
          for (const AllowedOverlap& overlap :
               allowed(entry, *steps[s], int64_t(s), read, written)) {
            const Span here{overlap, int64_t(s), int64_t(s)};
            if (saving(overlap) <= saved ||
                std::any_of(taken.begin(), taken.end(),
                            [&](const Span& other) { return here.conflicts(other); })) {
              continue;
            }
            saved = saving(overlap);
            best = overlap;
            span = nullptr;
            calls[s] = {steps[s]->kernel, blocks_[read].members.front(),
                        blocks_[written].members.front()};
          }
        }
      }
      if (saved > 0) {
        problem.overlaps.push_back(best);
        taken.push_back(span != nullptr ? *span : Span{best, int64_t(s), int64_t(s)});
        if (span != nullptr) calls.erase(s);
      }
      level = std::max(level, live[s] - saved);
    }
    for (auto& [step, call] : calls) reaching_.push_back(std::move(call));
  }

  int64_t saving(const AllowedOverlap& overlap) const {
    const int64_t lower = blocks_[overlap.lower].bytes, upper = blocks_[overlap.upper].bytes;
    return lower + upper - std::max(lower, upper + overlap.distance);
  }

  /// Adds the pair both ways round, where the distance leaves something.
  void add_pair(size_t read, size_t written, const loop::OverlapDistance& distance,
                std::vector<AllowedOverlap>& overlaps) const {
    const auto add = [&](size_t lower, size_t upper, int64_t bytes) {
      bytes = round_up(std::max<int64_t>(bytes, 1));
      if (bytes < blocks_[lower].bytes) overlaps.push_back({lower, upper, bytes});
    };
    add(written, read, distance.read_above);
    add(read, written, distance.written_above);
  }

  /// Of what a loop writes with what it reads, where either is one block's all that time.
  std::vector<Span> overlaps_of_loops(const loop::EntryPoint& entry) const {
    std::vector<Span> spans;
    for (const loop::Step& step : entry.steps) {
      if (step.kind != loop::StepKind::loop) continue;
      for (const BufferId operand : loop::read_buffers(result_, step)) {
        for (const BufferId result : loop::written_buffers(result_, step)) {
          if (operand != result) add_span(entry, operand, result, spans);
        }
      }
    }
    return spans;
  }

  void add_span(const loop::EntryPoint& entry, BufferId operand, BufferId result,
                std::vector<Span>& spans) const {
    const int read = block_of_[size_t(operand)], written = block_of_[size_t(result)];
    if (read < 0 || written < 0 || read == written) return;
    if (blocks_[size_t(read)].members.back() != operand) return;
    if (blocks_[size_t(written)].members.front() != result) return;
    const int64_t first = blocks_[size_t(written)].first, last = blocks_[size_t(read)].last;
    if (first <= ranges_[size_t(operand)].first || first >= last) return;
    if (ranges_[size_t(result)].last <= last) return;
    const auto distance = loop::overlap_distance(result_, entry, first, last, operand, result);
    std::vector<AllowedOverlap> overlaps;
    if (distance) add_pair(size_t(read), size_t(written), *distance, overlaps);
    for (const AllowedOverlap& overlap : overlaps) spans.push_back({overlap, first, last});
  }

  /// The overlaps of block `written`, which begins with the step, and `read`, which ends with it.
  std::vector<AllowedOverlap> allowed(const loop::EntryPoint& entry, const loop::Step& step,
                                      int64_t at, size_t read, size_t written) const {
    if (read == written || blocks_[read].first == blocks_[read].last) return {};
    const BufferId operand = blocks_[read].members.back();
    const BufferId result = blocks_[written].members.front();
    if (!loop::ends_at(entry, ranges_[size_t(operand)], at)) return {};
    const auto distance = loop::overlap_distance(result_, step, operand, result);
    if (!distance) return {};
    std::vector<AllowedOverlap> overlaps;
    add_pair(read, written, *distance, overlaps);
    return overlaps;
  }

  void place(const PlacementProblem& problem) {
    const int64_t count = static_cast<int64_t>(blocks_.size());
    const TightPlacement placed = place_tightly(problem, kSearchWork / (count + 1), progress_);
    for (size_t b = 0; b < blocks_.size(); ++b) {
      for (BufferId id : blocks_[b].members) result_.buffers[size_t(id)].offset = placed.offsets[b];
    }
    result_.arena_bytes = std::max(result_.arena_bytes, placed.bytes);
    result_.arena_bound = std::max(result_.arena_bound, placed.bound);
    result_.arena_alignment = alignment_;
  }

  Program result_;
  PlacementProgress progress_;
  int64_t alignment_ = 16;
  std::vector<LiveRange> ranges_;
  std::vector<Block> blocks_;
  std::vector<int> block_of_;
  std::vector<ReachingCall> reaching_;
};

}  // namespace

Program plan_memory(const Program& program, const TargetInfo& target,
                    const PlacementProgress& progress) {
  Planner planner(program, target, progress);
  Program best = planner.run();
  for (const Program& way : alternate_directions(program, planner.reaching())) {
    Program planned = Planner(way, target, progress).run();
    if (planned.arena_bytes < best.arena_bytes) best = std::move(planned);
  }
  return best;
}

int64_t arena_bound(const Program& program, size_t entry, const TargetInfo& target) {
  return Planner(program, target, {}).bound(entry);
}

}  // namespace backcast
