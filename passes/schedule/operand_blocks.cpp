// See operand_blocks.h.
#include "passes/schedule/operand_blocks.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "ir/loop/visit.h"
#include "passes/lower/definition_cost.h"
#include "passes/schedule/affine.h"

namespace backcast {
namespace {

using loop::Axis;
using loop::Definition;
using loop::Expr;
using loop::Kernel;

constexpr int64_t kLine = 64;
// Steps of a tile that make its totals' way through memory and back cheap.
constexpr int64_t kFewestSteps = 24;
// Parts of a vector that come from the second cache in a cycle, and from behind it.
constexpr double kNear = 0.7, kFar = 0.375;
// Cycles that a step of a tile takes beside its arithmetic, and that a tile takes to begin and end.
constexpr double kSlack = 0.6, kTile = 8;
// Cycles that rearranging an element takes.
constexpr double kCopy = 0.25;
// What is gained has to outweigh what the model does not know.
constexpr double kGain = 0.92;

struct Operand {
  std::string buffer;
  Expr flat;
};

class Cutting {
 public:
  Cutting(const Definition& definition, const Kernel& kernel, const TargetInfo& target)
      : definition_(definition), kernel_(kernel), target_(target) {
    for_each_access(definition, [&](const loop::ExprNode& read, bool in_reduction) {
      if (!in_reduction) return;
      const loop::BufferParam& param = *kernel.find(read.name);
      operands_.push_back({read.name, loop::flat_index(param.shape, read.args)});
      const std::optional<int64_t> bytes = static_bytes(param);
      known_ = known_ && bytes && !reads_memory(operands_.back().flat);
      element_ = byte_size(loop::element_of(param.element));
      bytes_ += bytes.value_or(0);
    });
    for (const std::vector<Axis>* axes : {&definition.axes, &definition.reduce_axes}) {
      for (const Axis& axis : *axes) {
        known_ = known_ && static_extent(axis);
        for (const Operand& operand : operands_) {
          known_ = known_ && coefficient(operand.flat, axis.name);
        }
      }
    }
  }

  std::optional<OperandBlocks> run(const NestSchedule& chosen,
                                   const std::function<NestSchedule(const Definition&)>& choose) {
    near_ = inside(chosen);
    if (!applies(chosen)) return std::nullopt;
    OperandBlocks result{definition_, {}, points(definition_.axes)};
    Definition one = definition_;  // the first block
    std::vector<std::string> blocks;
    if (!cut(chosen, result.definition, one, blocks)) return std::nullopt;
    result.schedule = choose(one);
    if (!fits(result.schedule) || !result.schedule.packed.empty()) return std::nullopt;
    if (inside(result.schedule).size() != near_.size()) return std::nullopt;
    for (const std::string& axis : cut_) {
      if (!may_cut(result.schedule, axis)) return std::nullopt;
    }
    if (!pays(chosen, result.schedule, one)) return std::nullopt;
    std::vector<std::string>& order = result.schedule.order;
    const auto at = std::find(order.begin(), order.end(), result.schedule.vector_axis);
    order.insert(at + 1, blocks.begin(), blocks.end());
    result.schedule.block_axes = blocks;
    result.schedule.blocks = points(definition_.reduce_axes) / points(one.reduce_axes);
    return result;
  }

 private:
  bool applies(const NestSchedule& chosen) const {
    if (!known_ || target_.l2_bytes == 0 || definition_.accumulators.size() != 1) return false;
    const loop::Accumulator& acc = definition_.accumulators[0];
    return acc.combine == loop::Combine::sum && bytes_ > target_.l1_bytes && fits(chosen) &&
           points(near_) * element_ <= target_.l2_bytes / 4;
  }

  /// The axes whose loops stand inside the vector axis', and that one.
  std::vector<Axis> inside(const NestSchedule& schedule) const {
    const auto end = std::find(schedule.order.begin(), schedule.order.end(), schedule.vector_axis);
    std::vector<Axis> axes;
    for (const Axis& axis : definition_.axes) {
      if (std::find(schedule.order.begin(), end, axis.name) == end) axes.push_back(axis);
    }
    return axes;
  }

  /// Vectors of results.
  static bool fits(const NestSchedule& schedule) {
    const bool at_run_time = std::all_of(schedule.packed.begin(), schedule.packed.end(),
                                         [](const auto& item) { return item.second.at_run_time; });
    return schedule.has_vectors() && schedule.lane_axis.empty() &&
           schedule.transposed_axis.empty() && schedule.chains == 1 && at_run_time;
  }

  static int64_t points(const std::vector<Axis>& axes) {
    int64_t n = 1;
    for (const Axis& axis : axes) n *= *static_extent(axis);
    return n;
  }

  /// Distinct elements that an operand reads while the axes run. A window and the positions that it
  /// stands at overlap.
  static int64_t reach(const Expr& flat, const std::vector<Axis>& axes) {
    std::vector<std::pair<int64_t, int64_t>> runs;  // between two elements, and how many
    for (const Axis& axis : axes) {
      const int64_t step = std::abs(*coefficient(flat, axis.name)), count = *static_extent(axis);
      if (step != 0 && count > 1) runs.emplace_back(step, count);
    }
    std::sort(runs.begin(), runs.end(), std::greater<>());
    int64_t elements = 1;
    for (size_t i = 0; i < runs.size(); ++i) {
      const auto [step, count] = runs[i];
      if (i + 1 < runs.size() && step % runs[i + 1].first == 0 &&
          step / runs[i + 1].first < runs[i + 1].second) {
        runs[i + 1].second += (count - 1) * (step / runs[i + 1].first);
      } else {
        elements *= count;
      }
    }
    return elements;
  }

  /// Bytes of the operands that a block takes.
  int64_t block_bytes(const Definition& block) const {
    std::vector<Axis> axes = near_;
    axes.insert(axes.end(), block.reduce_axes.begin(), block.reduce_axes.end());
    int64_t bytes = 0;
    for (const Operand& operand : operands_) {
      bytes += std::min(reach(operand.flat, axes) * element_,
                        *static_bytes(*kernel_.find(operand.buffer)));
    }
    return bytes;
  }

  /// The conditions that mention the axis.
  std::vector<Expr> guards_of(const std::string& axis) const {
    std::vector<Expr> guards;
    loop::visit(definition_.accumulators[0].value, [&](const Expr& e) {
      if (e->kind != loop::ExprKind::if_then_else) return;
      for (const Expr& part : conjuncts(e->args[0])) {
        if (mentions(part, axis)) guards.push_back(part);
      }
    });
    return guards;
  }

  /// Whether conditions on the axis can be the bounds of its loop in every block.
  bool may_cut(const NestSchedule& schedule, const std::string& axis) const {
    bool may = !schedule.unrolled.count(axis);
    for (const Expr& guard : guards_of(axis)) {
      for (const std::string& tiled :
           {schedule.vector_axis, schedule.tile_axis, schedule.jam_axis, schedule.outer_jam_axis}) {
        may = may && (tiled.empty() || !mentions(guard, tiled));
      }
    }
    return may;
  }

  /// Cuts reduction axes, the one with the longest steps first, until the first cache holds a block
  /// of both operands. `one` becomes the first block, `whole` the sum over all.
  bool cut(const NestSchedule& chosen, Definition& whole, Definition& one,
           std::vector<std::string>& blocks) {
    std::vector<std::pair<int64_t, std::string>> axes;
    for (const Axis& axis : definition_.reduce_axes) {
      if (static_extent(axis) == 1) continue;
      int64_t step = 0;
      for (const Operand& o : operands_) {
        step = std::max(step, std::abs(*coefficient(o.flat, axis.name)));
      }
      axes.emplace_back(-step, axis.name);
    }
    std::stable_sort(axes.begin(), axes.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    for (const auto& [step, name] : axes) {
      if (block_bytes(one) <= target_.l1_bytes) break;
      if (!may_cut(chosen, name)) return false;
      blocks.push_back(cut_axis(name, whole, one));
      cut_.push_back(name);
      if (loop_less_) return false;
    }
    return !blocks.empty() && block_bytes(one) <= target_.l1_bytes &&
           points(one.reduce_axes) >= kFewestSteps;
  }

  std::string cut_axis(const std::string& name, Definition& whole, Definition& one) {
    const auto in = [&](Definition& d) {
      return std::find_if(d.reduce_axes.begin(), d.reduce_axes.end(),
                          [&](const Axis& axis) { return axis.name == name; });
    };
    const int64_t extent = *static_extent(*in(one));
    int64_t size = extent;
    do {
      do --size;
      while (size > 1 && extent % size != 0);
      in(one)->extent = Expr(size);
    } while (size > 1 && block_bytes(one) > target_.l1_bytes);
    std::string block = name + "_block";
    for (const std::vector<Axis>* axes : {&whole.axes, &whole.reduce_axes}) {
      for (const Axis& axis : *axes) block += axis.name == block ? "_" : "";
    }
    const Expr at = size == 1 ? loop::var(block) : loop::var(block) * Expr(size) + loop::var(name);
    whole.accumulators[0].value = loop::substitute(whole.accumulators[0].value, {{name, at}});
    if (size == 1) {
      loop_less_ = loop_less_ || !guards_of(name).empty();
      one.accumulators[0].value = loop::substitute(one.accumulators[0].value, {{name, Expr(0)}});
      one.reduce_axes.erase(in(one));
      whole.reduce_axes.erase(in(whole));
    } else {
      in(whole)->extent = Expr(size);
    }
    whole.reduce_axes.insert(whole.reduce_axes.begin(), Axis{block, Expr(extent / size)});
    return block;
  }

  /// Of the lines that so many bytes lie in, at a multiple of them.
  static double in_lines(int64_t bytes) {
    const int64_t apart = std::gcd(bytes, kLine);
    return static_cast<double>((bytes - apart) + kLine);
  }

  struct Step {
    double cycles = 0, bytes = 0;  // of its arithmetic; of the lines that it is the first to read
    int64_t sums = 0;
  };

  Step step_of(const NestSchedule& schedule, const Definition& definition) const {
    const int64_t rows = schedule.largest_tile(), vectors = schedule.vector_segments[0].vectors;
    const int64_t width = schedule.vector_segments[0].width() * element_;
    std::vector<Axis> axes = definition.reduce_axes;
    for (const Axis& axis : definition.axes) {
      if (axis.name == schedule.jam_axis || axis.name == schedule.outer_jam_axis) {
        axes.push_back(axis);
      }
    }
    Step step;
    step.sums = rows * schedule.jam * vectors;
    double loads = 0;
    for (const Operand& o : operands_) {
      const int64_t along =
          schedule.tile_axis.empty() ? 0 : *coefficient(o.flat, schedule.tile_axis);
      const bool with_vector = mentions(o.flat, schedule.vector_axis);
      int64_t read = with_vector ? vectors : 1, pitch = INT64_MAX;
      if (along != 0) read *= rows;
      for (const Axis& axis : axes) {
        const int64_t c = std::abs(*coefficient(o.flat, axis.name));
        if (c != 0) pitch = std::min(pitch, c * element_);
        const bool jammed = axis.name == schedule.jam_axis || axis.name == schedule.outer_jam_axis;
        if (jammed && c != 0) read *= *static_extent(axis);
      }
      loads += static_cast<double>(read);
      const bool packed = schedule.packed.count(o.buffer);
      double bytes = with_vector ? width : along == 1 ? rows * element_ : element_;
      if (!packed)
        bytes = std::min(in_lines(static_cast<int64_t>(bytes)), static_cast<double>(pitch));
      if (along > 1) bytes *= static_cast<double>(rows);
      step.bytes += static_cast<double>(reach(o.flat, axes)) * bytes;
    }
    step.bytes /= static_cast<double>(points(definition.reduce_axes));
    const bool fused = target_.fuses_products();
    const double units = static_cast<double>(step.sums) * (fused ? 1 : 2) / target_.fma_units;
    step.cycles = std::max(units, loads / 2) + kSlack;
    return step;
  }

  /// Tiles that take a block of the vector axis.
  double tiles_of(const NestSchedule& schedule, const Step& step) const {
    double columns = 0;
    for (const VectorSegment& segment : schedule.vector_segments) {
      columns += static_cast<double>(segment.count * segment.width());
    }
    const double rows = static_cast<double>(step.sums / schedule.vector_segments[0].vectors);
    return static_cast<double>(points(near_)) / (columns * rows);
  }

  bool pays(const NestSchedule& chosen, const NestSchedule& in_blocks,
            const Definition& one) const {
    const bool far = bytes_ * 8 > target_.l2_bytes * 7;
    const double rate = (far ? kFar : kNear) * target_.vector_bits / 8;
    const Step before = step_of(chosen, definition_), after = step_of(in_blocks, one);
    const double tiles = tiles_of(in_blocks, after);
    const double in_one = static_cast<double>(points(one.reduce_axes));
    const double brought = static_cast<double>(block_bytes(one)) / (tiles * in_one);
    const double totals = (1.5 * static_cast<double>(after.sums) + kTile) / in_one;
    // Of a sum.
    const double copied = static_cast<double>(chosen.packed.size()) * kCopy *
                          static_cast<double>(chosen.vector_segments[0].width());
    const double old_cycles =
        std::max(before.cycles, before.bytes / rate) + copied / tiles_of(chosen, before);
    const double new_cycles = std::max(after.cycles, brought / rate) + totals;
    return new_cycles / static_cast<double>(after.sums) <
           old_cycles / static_cast<double>(before.sums) * kGain;
  }

  const Definition& definition_;
  const Kernel& kernel_;
  const TargetInfo& target_;
  std::vector<Operand> operands_;
  std::vector<Axis> near_;        // those that blocks serve all positions of
  std::vector<std::string> cut_;  // axes of the reduction
  bool loop_less_ = false;        // a condition has lost the loop whose bounds it was
  bool known_ = true;
  int64_t element_ = 4, bytes_ = 0;
};

}  // namespace

std::optional<OperandBlocks> cut_operands(
    const Definition& definition, const Kernel& kernel, const NestSchedule& chosen,
    const TargetInfo& target, const std::function<NestSchedule(const Definition&)>& choose) {
  return Cutting(definition, kernel, target).run(chosen, choose);
}

}  // namespace backcast
