// In-place joins first, in step order; then placement (place_tightly.h). The bound is the largest
// sum of bytes live at one step.
#include "passes/plan/plan_memory.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>
#include <set>

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

/// A few seconds, or a twentieth: nodes times buffers are about proportional to the time, visits
/// where nodes take longer than most.
PlacementBudget budget_of(PlacementSearch search, int64_t buffers) {
  const int64_t share = search == PlacementSearch::full ? 20 : 1;
  return {share * 1'000'000 / (buffers + 1), share * 50'000'000};
}

/// A block of arena: one storage, or several that take over from one another.
struct Block {
  int64_t bytes = 0;
  int64_t first = 0, last = 0;
  std::vector<BufferId> members;
};

/// Two blocks that may overlap, and the steps in which both live.
struct Meeting {
  size_t read = 0, written = 0;
  int64_t first = 0, last = 0;
  AllowedOverlap overlap;

  bool holds(int64_t step) const { return first <= step && step <= last; }
  /// Whether a block would be in two overlaps at once.
  bool conflicts(const Meeting& other) const {
    const bool meet = first <= other.last && other.first <= last;
    const auto takes = [&](size_t b) { return b == read || b == written; };
    return meet && (takes(other.read) || takes(other.written));
  }
};

class Planner {
 public:
  Planner(const Program& program, const TargetInfo& target, const PlacementProgress& progress = {},
          PlacementSearch search = PlacementSearch::full)
      : result_(program), progress_(progress), search_(search) {
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
    std::map<int64_t, ReachingCall> calls;  // by step
    const std::vector<Meeting> loops = meetings_in_loops(entry);
    std::vector<Meeting> taken;
    for (const size_t at : fullest) {
      if (live[at] <= level) break;
      const int64_t s = static_cast<int64_t>(at);
      std::vector<Meeting> found;
      const auto holds = [&](const Meeting& meeting) { return meeting.holds(s); };
      std::copy_if(taken.begin(), taken.end(), std::back_inserter(found), holds);
      const bool is_taken = !found.empty();
      if (!is_taken) {
        std::copy_if(loops.begin(), loops.end(), std::back_inserter(found), holds);
        for (const size_t written : begin[at]) {
          for (const size_t read : end[at]) add_meeting(entry, *steps[at], s, read, written, found);
        }
        std::erase_if(found, [&](const Meeting& meeting) {
          return std::any_of(taken.begin(), taken.end(),
                             [&](const Meeting& other) { return meeting.conflicts(other); });
        });
      }
      const auto best = std::max_element(
          found.begin(), found.end(),
          [&](const Meeting& a, const Meeting& b) { return saving(a) < saving(b); });
      const int64_t saved = best == found.end() ? 0 : saving(*best);
      level = std::max(level, live[at] - saved);
      if (saved == 0 || is_taken) continue;
      taken.push_back(*best);
      problem.overlaps.push_back(best->overlap);
      if (best->first != best->last) continue;
      calls[s] = {steps[at]->kernel, blocks_[best->read].members.front(),
                  blocks_[best->written].members.front()};
    }
    for (auto& [step, call] : calls) reaching_.push_back(std::move(call));
  }

  int64_t saving(const Meeting& meeting) const {
    const auto [lower, upper, distance] = meeting.overlap;
    const int64_t below = blocks_[lower].bytes, above = blocks_[upper].bytes;
    return below + above - std::max(below, above + distance);
  }

  /// Either way round, where the distance leaves something.
  void add_both(const Meeting& meeting, const std::optional<loop::OverlapDistance>& distance,
                std::vector<Meeting>& found) const {
    if (!distance) return;
    const auto add = [&](size_t lower, size_t upper, int64_t bytes) {
      bytes = round_up(std::max<int64_t>(bytes, 1));
      if (bytes >= blocks_[lower].bytes) return;
      found.push_back(meeting);
      found.back().overlap = {lower, upper, bytes};
    };
    add(meeting.written, meeting.read, distance->read_above);
    add(meeting.read, meeting.written, distance->written_above);
  }

  /// Of what a loop writes with what it reads, where either is one block's all that time.
  std::vector<Meeting> meetings_in_loops(const loop::EntryPoint& entry) const {
    std::vector<Meeting> found;
    const std::vector<const loop::Step*> steps = loop::flat_steps(entry.steps);
    for (size_t s = 0; s < steps.size(); ++s) {
      if (steps[s]->kind != loop::StepKind::loop) continue;
      const int64_t first = static_cast<int64_t>(s);
      const int64_t last = first + loop::count_steps(*steps[s]) - 1;
      const auto lives = [&](BufferId id) {
        const LiveRange& range = ranges_[size_t(id)];
        return range.first <= first && range.last >= last;
      };
      std::set<BufferId> results = loop::written_buffers(result_, *steps[s]);
      std::erase_if(results, [&](BufferId id) { return !lives(id); });
      for (const BufferId operand : loop::read_buffers(result_, *steps[s])) {
        if (!lives(operand)) continue;
        for (const BufferId result : results) add_meeting(entry, operand, result, found);
      }
    }
    return found;
  }

  /// Of a storage that several steps write with one that they read.
  void add_meeting(const loop::EntryPoint& entry, BufferId operand, BufferId result,
                   std::vector<Meeting>& found) const {
    const int read = block_of_[size_t(operand)], written = block_of_[size_t(result)];
    if (read < 0 || written < 0 || read == written) return;
    const Block &from = blocks_[size_t(read)], &to = blocks_[size_t(written)];
    const bool alone = from.members.back() == operand && to.members.front() == result &&
                       ranges_[size_t(operand)].first < to.first &&
                       ranges_[size_t(result)].last > from.last;
    if (!alone || to.first >= from.last) return;
    add_both({size_t(read), size_t(written), to.first, from.last, {}},
             loop::overlap_distance(result_, entry, to.first, from.last, operand, result), found);
  }

  /// Of block `written`, which begins with the step, with `read`, which ends with it.
  void add_meeting(const loop::EntryPoint& entry, const loop::Step& step, int64_t at, size_t read,
                   size_t written, std::vector<Meeting>& found) const {
    if (read == written || blocks_[read].first == blocks_[read].last) return;
    const BufferId operand = blocks_[read].members.back();
    const BufferId result = blocks_[written].members.front();
    if (!loop::ends_at(entry, ranges_[size_t(operand)], at)) return;
    add_both({read, written, at, at, {}}, loop::overlap_distance(result_, step, operand, result),
             found);
  }

  void place(const PlacementProblem& problem) {
    const PlacementBudget budget = budget_of(search_, static_cast<int64_t>(blocks_.size()));
    const TightPlacement placed = place_tightly(problem, budget, progress_);
    for (size_t b = 0; b < blocks_.size(); ++b) {
      for (BufferId id : blocks_[b].members) result_.buffers[size_t(id)].offset = placed.offsets[b];
    }
    result_.arena_bytes = std::max(result_.arena_bytes, placed.bytes);
    result_.arena_bound = std::max(result_.arena_bound, placed.bound);
    result_.arena_alignment = alignment_;
  }

  Program result_;
  PlacementProgress progress_;
  PlacementSearch search_;
  int64_t alignment_ = 16;
  std::vector<LiveRange> ranges_;
  std::vector<Block> blocks_;
  std::vector<int> block_of_;
  std::vector<ReachingCall> reaching_;
};

}  // namespace

Program plan_memory(const Program& program, const TargetInfo& target,
                    const PlacementProgress& progress, PlacementSearch search) {
  Planner planner(program, target, progress, search);
  Program best = planner.run();
  for (const Program& way : alternate_directions(program, planner.reaching())) {
    Program planned = Planner(way, target, progress, search).run();
    if (planned.arena_bytes < best.arena_bytes) best = std::move(planned);
  }
  return best;
}

int64_t arena_bound(const Program& program, size_t entry, const TargetInfo& target) {
  return Planner(program, target).bound(entry);
}

}  // namespace backcast
