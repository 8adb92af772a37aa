// See nonzero_steps.h.
#include "passes/schedule/nonzero_steps.h"

#include <algorithm>
#include <utility>

#include "ir/loop/visit.h"
#include "passes/lower/definition_cost.h"
#include "passes/schedule/affine.h"
#include "passes/schedule/nonzero_rows.h"
#include "passes/schedule/reduction_blocks.h"
#include "passes/schedule/skipping_costs.h"

namespace backcast {

using loop::Axis;
using loop::Definition;
using loop::Expr;

namespace {

int64_t extent_of(const Definition& definition, const std::string& name) {
  for (const auto* axes : {&definition.axes, &definition.reduce_axes}) {
    for (const Axis& axis : *axes) {
      if (axis.name == name) return *static_extent(axis);
    }
  }
  return 1;
}

/// The order of a packed operand's steps becomes that of the loops, if it holds just these.
bool reorder(Packing& packing, const Definition& definition,
             const std::vector<std::string>& order) {
  if (packing.reduce == order) return true;
  if (packing.at_run_time || packing.reduce.size() != order.size()) return false;
  if (std::count(packing.reversed.begin(), packing.reversed.end(), true) > 0) return false;
  for (size_t i = 0; i < order.size(); ++i) {
    packing.reduce[i] = order[i];
    packing.reduce_extents[i] = extent_of(definition, order[i]);
  }
  return true;
}

/// Whether the operand's steps are equally far apart along the axes.
bool is_even(const Expr& flat, const Definition& definition, const std::vector<std::string>& axes) {
  const std::optional<int64_t> step = coefficient(flat, axes.back());
  int64_t run = 1;
  for (size_t i = axes.size(); i-- > 0 && step;) {
    if (coefficient(flat, axes[i]) != *step * run) return false;
    run *= extent_of(definition, axes[i]);
  }
  return step.has_value();
}

/// Registers that a result's steps take in turn, so that none waits for its own last addition.
int64_t chains_for(int64_t registers, const TargetInfo& target) {
  const int64_t units = SkippingCosts::units(target);
  int64_t chains = 1;
  while (chains * registers < target.fma_latency * units &&
         4 * chains * registers <= target.vector_registers) {
    chains *= 2;
  }
  return chains;
}

/// One way to leave out zeros, and what it takes.
class Candidate {
 public:
  Candidate(const Definition& definition, const loop::Kernel& kernel,
            const SkippingContext& context)
      : kernel_(kernel), context_(context), target_(context.target) {
    result_.definition = definition;
  }

  /// False where sums of so many vectors cannot skip.
  bool form(const NonzeroRows& rows, const TileLimits& limits) {
    rows_ = rows;
    result_.schedule = context_.choose(result_.definition, limits);
    if (!adapt()) return false;
    const bool in_blocks = target_.vector_bits > 0 && costs().results() > 1 &&
                           costs().weight_bytes(costs().steps()) > target_.l1_bytes;
    if (in_blocks && !cut()) return false;
    gather_rows(in_blocks);
    return (!in_blocks || order_blocks()) && find_span();
  }

  double cycles() const { return costs().skipping(); }
  double taking_all(double cycles) const { return costs().taking_all(cycles); }

  SkippingNest finish() {
    StepMask& mask = result_.schedule.taken;
    mask = {.axes = rows_.axes,
            .factor = rows_.factor,
            .element = kernel_.find(rows_.factor)->element,
            .count = rows_.count,
            .word = mask_word(rows_.count, target_),
            .lanes = static_cast<int32_t>(target_.vector_lanes(costs().element_bytes())),
            .depth = depth_,
            .first = first_,
            .row = loop::simplify(rows_.row - first_),
            .span = span_};
    if (rows_.is_guarded) mask.rows = rows_.rows;
    const auto packing = result_.schedule.packed.find(rows_.weight);
    // The second cache is near enough without.
    const bool is_far = context_.program_bytes > target_.l2_bytes;
    if (is_far && result_.schedule.local_totals > 0 && packing != result_.schedule.packed.end()) {
      mask.fetched = rows_.weight;
    }
    return std::move(result_);
  }

 private:
  SkippingCosts costs() const {
    return {target_, context_.program_bytes, rows_, result_.definition, result_.schedule, group_};
  }

  bool adapt() {
    NestSchedule& schedule = result_.schedule;
    // From memory, rows come no faster when every other one is left out.
    const bool from_memory =
        target_.l2_bytes > 0 && context_.program_bytes > SkippingCosts::held(target_);
    // Tiles of rows load a weight once, others multiply straight from memory.
    const bool loads_apart = target_.vector_bits == 0 || target_.loads_apart();
    if (costs().results() == 1 ? from_memory : loads_apart) return false;
    if (schedule.vector_axis.empty() || !schedule.lane_axis.empty() ||
        !schedule.block_axes.empty() || !schedule.tile_axis.empty() || schedule.jam > 1 ||
        mentions(rows_.row, schedule.vector_axis) || schedule.packed.count(rows_.factor)) {
      return false;
    }
    if (costs().results() == 0) return false;
    const auto packing = schedule.packed.find(rows_.weight);
    const bool fits = packing == schedule.packed.end()
                          ? is_even(rows_.flat_weight, result_.definition, rows_.axes)
                          : reorder(packing->second, result_.definition, rows_.order);
    if (!fits) return false;
    schedule.reduce_order = rows_.order;
    schedule.unrolled.clear();
    schedule.reduce_unroll = 1;
    schedule.chains = chains_for(schedule.vector_segments.front().vectors, target_);
    return true;
  }

  /// Blocks whose weights the first cache holds, each for many results before the next one.
  bool cut() {
    constexpr int64_t kFewestSteps = 24;
    int64_t size = rows_.count;
    while (size > 0 && (rows_.count % size != 0 || !fits(size))) --size;
    if (size < std::min(kFewestSteps, rows_.count)) return false;
    if (size < rows_.count) {
      if (rows_.axes.size() > 1) return false;
      const std::string axis = rows_.axes[0], block = fresh_axis(result_.definition, axis);
      result_.definition = cut_axis(result_.definition, axis, size, block);
      const std::optional<NonzeroRows> rows =
          find_nonzero_rows(result_.definition, kernel_, context_.is_rectified, block);
      if (!rows) return false;
      rows_ = *rows;
      result_.schedule = context_.choose(result_.definition, limits_of());
      if (!adapt()) return false;
    }
    return true;
  }

  TileLimits limits_of() const { return {1, result_.schedule.vector_segments.front().vectors}; }

  /// The innermost loops over results, `group_` of them, that share what they find of the factor
  /// and, in blocks, the weights. What stands outside can be shared out among threads.
  void gather_rows(bool in_blocks) {
    NestSchedule& schedule = result_.schedule;
    constexpr int64_t kMostMarked = 32;
    const int64_t most = in_blocks ? target_.l1_bytes / costs().weight_bytes(1) : kMostMarked;
    int64_t blocks = 0;
    for (const VectorSegment& segment : schedule.vector_segments) blocks += segment.count;
    const bool is_shared_out = target_.parallel_grain > 0 && (blocks == 1 || !in_blocks);
    depth_ = target_.vector_bits > 0 ? schedule.order.size() : 0;
    for (size_t at = schedule.order.size(); target_.vector_bits > 0 && at-- > 0;) {
      const std::string name = schedule.order[at];
      if (name == schedule.vector_axis) {
        // Results whose weights come one vector after another.
        if (in_blocks || group_ > 1 || costs().results() == 1) return;
        depth_ = at;
        continue;
      }
      const int64_t extent = extent_of(result_.definition, name);
      const bool is_all = is_shared_out && group_ * extent == costs().results();
      if (extent > 1 && (is_all || group_ * extent > most)) {
        const int64_t size = part_of(extent, std::min(most / group_, extent / 2));
        if (size == 1 || mentions(rows_.flat_weight, name)) return;
        cut_results(name, size, at);
        group_ *= size;
        depth_ = at + 1;
        return;
      }
      group_ *= extent;
      depth_ = at;
    }
  }

  /// The largest divisor that is not beyond `most`.
  static int64_t part_of(int64_t extent, int64_t most) {
    int64_t size = std::max<int64_t>(most, 1);
    while (extent % size != 0) --size;
    return size;
  }

  /// Results along axis `name`, which stands at `at` of the order, in parts of `size`.
  void cut_results(const std::string& name, int64_t size, size_t at) {
    const std::string part = fresh_axis(result_.definition, name);
    result_.definition = cut_axis(result_.definition, name, size, part);
    std::vector<std::string>& order = result_.schedule.order;
    order.insert(order.begin() + static_cast<std::ptrdiff_t>(at), part);
    rows_.row =
        loop::substitute(rows_.row, {{name, loop::var(part) * Expr(size) + loop::var(name)}});
  }

  /// Does the first cache hold the weights of so many steps, beside what they are multiplied by?
  bool fits(int64_t steps) const { return 4 * costs().weight_bytes(steps) <= 3 * target_.l1_bytes; }

  /// Blocks stand right outside of the results that share their weights.
  bool order_blocks() {
    NestSchedule& schedule = result_.schedule;
    constexpr int64_t kFewestRows = 4;
    if (group_ < kFewestRows) return false;
    schedule.block_axes.assign(rows_.order.begin(),
                               rows_.order.end() - static_cast<std::ptrdiff_t>(rows_.axes.size()));
    // Taps whose weights are near together are taken one after another.
    int64_t steps = rows_.count;
    while (!schedule.block_axes.empty() &&
           fits(steps * extent_of(result_.definition, schedule.block_axes.back()))) {
      steps *= extent_of(result_.definition, schedule.block_axes.back());
      schedule.block_axes.pop_back();
    }
    if (schedule.block_axes.empty()) return false;
    schedule.blocks = costs().steps() / steps;
    schedule.order.insert(schedule.order.begin() + static_cast<std::ptrdiff_t>(depth_),
                          schedule.block_axes.begin(), schedule.block_axes.end());
    for (const VectorSegment& segment : schedule.vector_segments) {
      schedule.local_totals = std::max(schedule.local_totals, group_ * segment.width());
    }
    return true;
  }

  /// The rows of the factor that are read inside: from one on that depends on loops outside.
  bool find_span() {
    constexpr int64_t kMostBytes = int64_t{32} << 10;
    Expr first = rows_.row;
    span_ = 1;
    const auto add = [&](const Axis& axis) {
      const std::optional<int64_t> step = coefficient(rows_.row, axis.name);
      if (!step || *step < 0) return false;
      span_ += *step * (*static_extent(axis) - 1);
      first = loop::substitute(first, {{axis.name, Expr(0)}});
      return true;
    };
    const std::vector<std::string>& order = result_.schedule.order;
    for (const Axis& axis : result_.definition.axes) {
      const auto at = std::find(order.begin(), order.end(), axis.name) - order.begin();
      if (at >= static_cast<std::ptrdiff_t>(depth_) && !add(axis)) return false;
    }
    for (const Axis& axis : result_.definition.reduce_axes) {
      const bool along = std::count(rows_.axes.begin(), rows_.axes.end(), axis.name) > 0;
      if (!along && !add(axis)) return false;
    }
    first_ = loop::simplify(first);
    return span_ * ((rows_.count + 7) / 8) <= kMostBytes;
  }

  const loop::Kernel& kernel_;
  const SkippingContext& context_;
  const TargetInfo& target_;
  NonzeroRows rows_;
  SkippingNest result_;
  int64_t group_ = 1;  // results beside one another that share a block's weights and bits
  size_t depth_ = 0;   // of their loops
  Expr first_;         // of the rows that they read, and how many
  int64_t span_ = 1;
};

}  // namespace

std::optional<SkippingNest> choose_nonzero_steps(const Definition& definition,
                                                 const loop::Kernel& kernel,
                                                 const SkippingContext& context) {
  const std::optional<NonzeroRows> rows =
      find_nonzero_rows(definition, kernel, context.is_rectified);
  if (!rows) return std::nullopt;
  std::optional<Candidate> best;
  double cycles = 0;
  for (const int64_t vectors : {16, 6, 4, 2}) {
    Candidate candidate(definition, kernel, context);
    if (!candidate.form(*rows, {1, vectors})) continue;
    if (best && candidate.cycles() >= cycles) continue;
    cycles = candidate.cycles();
    best.emplace(std::move(candidate));
  }
  constexpr double kGain = 1.05;
  if (!best || kGain * cycles > best->taking_all(context.cycles())) return std::nullopt;
  // Last: this looks at every weight.
  if (!context.is_weight(rows->weight)) return std::nullopt;
  return best->finish();
}

}  // namespace backcast
