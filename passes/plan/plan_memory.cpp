// In-place joins first, in step order; then placement: several orders of greedy best fit, the best
// result kept. The bound is the largest sum of bytes live at one step.
#include "passes/plan/plan_memory.h"

#include <algorithm>
#include <numeric>

#include "ir/graph/error.h"
#include "ir/loop/liveness.h"

namespace backcast {
namespace {

using loop::AccessMode;
using loop::BufferClass;
using loop::BufferId;
using loop::LiveRange;
using loop::Program;

/// A block of arena: one storage, or several that take over from one another.
struct Block {
  int64_t bytes = 0;
  int64_t first = 0, last = 0;
  int64_t offset = -1;
  std::vector<BufferId> members;
};

class Planner {
 public:
  Planner(const Program& program, const TargetInfo& target) : result_(program) {
    alignment_ = std::max<int64_t>(target.vector_bits / 8, 8);
  }

  Program run() {
    for (loop::Buffer& buffer : result_.buffers) {
      if (buffer.kind == BufferClass::arena) buffer.offset = -1;
    }
    for (size_t e = 0; e < result_.entries.size(); ++e) {
      ranges_ = loop::live_ranges(result_, result_.entries[e]);
      make_blocks(result_.entries[e]);
      place();
    }
    place_state();
    return std::move(result_);
  }

 private:
  int64_t round_up(int64_t bytes) const {
    return (bytes + alignment_ - 1) / alignment_ * alignment_;
  }

  void make_blocks(const loop::EntryPoint& entry) {
    block_of_.assign(result_.buffers.size(), -1);
    blocks_.clear();
    const std::vector<const loop::Step*> steps = loop::flat_steps(entry.steps);
    for (size_t s = 0; s < steps.size(); ++s) {
      const loop::Step& step = *steps[s];
      for (size_t i = 0; i < step.buffers.size(); ++i) {
        if (step.buffers[i] < 0) continue;
        BufferId id = result_.owner(step.buffers[i]);
        if (result_.buffer(id).kind != BufferClass::arena || block_of_[size_t(id)] >= 0) continue;
        int taken = takes_over(step, i, static_cast<int64_t>(s));
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
        blocks_.push_back({round_up(result_.storage_bytes(id)), range.first, range.last, -1, {id}});
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
  int takes_over(const loop::Step& step, size_t i, int64_t at) const {
    if (step.kind != loop::StepKind::call) return -1;
    const loop::Kernel& kernel = result_.kernels.at(step.kernel);
    BufferId written = step.buffers[i];
    if (result_.buffer(written).view_of >= 0) return -1;
    for (const std::string& name : kernel.buffers[i].over) {
      for (size_t j = 0; j < kernel.buffers.size(); ++j) {
        if (kernel.buffers[j].name != name) continue;
        BufferId read = step.buffers[j];
        BufferId owner = result_.owner(read);
        if (result_.buffer(owner).kind != BufferClass::arena || block_of_[size_t(owner)] < 0)
          continue;
        const Block& block = blocks_[size_t(block_of_[size_t(owner)])];
        bool whole = offset_is_zero(read) && block.bytes >= result_.storage_bytes(written);
        // The operand's storage must reach the kernel through this parameter alone.
        int64_t uses = std::count_if(step.buffers.begin(), step.buffers.end(),
                                     [&](BufferId b) { return result_.owner(b) == owner; });
        if (block.last == at && whole && uses == 1) return block_of_[size_t(owner)];
      }
    }
    return -1;
  }

  bool offset_is_zero(BufferId id) const {
    for (; result_.buffer(id).view_of >= 0; id = result_.buffer(id).view_of) {
      if (!(result_.buffer(id).view_offset == Dim(0))) return false;
    }
    return true;
  }

  /// Lowest offset that is free over the block's life.
  int64_t best_offset(const Block& block, const std::vector<const Block*>& placed) const {
    std::vector<const Block*> rivals;
    for (const Block* other : placed) {
      if (other->first <= block.last && block.first <= other->last) rivals.push_back(other);
    }
    std::sort(rivals.begin(), rivals.end(),
              [](const Block* a, const Block* b) { return a->offset < b->offset; });
    int64_t at = 0, best = -1, best_gap = INT64_MAX;
    for (const Block* rival : rivals) {
      int64_t gap = rival->offset - at;
      if (gap >= block.bytes && gap < best_gap) {
        best = at;
        best_gap = gap;
      }
      at = std::max(at, rival->offset + rival->bytes);
    }
    return best >= 0 ? best : at;
  }

  template <class Less>
  int64_t try_order(const Less& less) {
    std::vector<size_t> order(blocks_.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return less(blocks_[a], blocks_[b]); });
    std::vector<const Block*> placed;
    int64_t peak = 0;
    for (size_t i : order) {
      blocks_[i].offset = best_offset(blocks_[i], placed);
      placed.push_back(&blocks_[i]);
      peak = std::max(peak, blocks_[i].offset + blocks_[i].bytes);
    }
    return peak;
  }

  int64_t bound() const {
    int64_t last = 0, result = 0;
    for (const Block& b : blocks_) last = std::max(last, b.last);
    std::vector<int64_t> change(static_cast<size_t>(last) + 2, 0);
    for (const Block& b : blocks_) {
      change[size_t(b.first)] += b.bytes;
      change[size_t(b.last) + 1] -= b.bytes;
    }
    int64_t live = 0;
    for (int64_t c : change) {
      live += c;
      result = std::max(result, live);
    }
    return result;
  }

  void place() {
    const auto by_size = [](const Block& a, const Block& b) { return a.bytes > b.bytes; };
    const auto by_start = [](const Block& a, const Block& b) { return a.first < b.first; };
    const auto by_area = [](const Block& a, const Block& b) {
      return a.bytes * (a.last - a.first + 1) > b.bytes * (b.last - b.first + 1);
    };
    int64_t size = try_order(by_size), start = try_order(by_start), area = try_order(by_area);
    int64_t peak = std::min({size, start, area});
    if (peak == size) {
      try_order(by_size);
    } else if (peak == start) {
      try_order(by_start);
    }
    for (const Block& block : blocks_) {
      for (BufferId id : block.members) result_.buffers[size_t(id)].offset = block.offset;
    }
    result_.arena_bytes = std::max(result_.arena_bytes, peak);
    result_.arena_bound = std::max(result_.arena_bound, bound());
    result_.arena_alignment = alignment_;
  }

  Program result_;
  int64_t alignment_ = 16;
  std::vector<LiveRange> ranges_;
  std::vector<Block> blocks_;
  std::vector<int> block_of_;
};

}  // namespace

Program plan_memory(const Program& program, const TargetInfo& target) {
  return Planner(program, target).run();
}

}  // namespace backcast
