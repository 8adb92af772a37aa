#include "passes/schedule/split_sums.h"

#include <algorithm>

#include "passes/lower/definition_cost.h"
#include "passes/schedule/affine.h"

namespace backcast {
namespace {

using loop::Axis;
using loop::Expr;

// Fewer rows have too few sums in one register each.
constexpr int64_t kFewestRows = 8;
// Shorter sums do not make up for a tile of its own.
constexpr int64_t kFewestSteps = 32;
// Two floats are loaded and repeated by one instruction.
constexpr int32_t kSplits = 2;

/// A plain tile of sums of products with one constant that is packed.
bool is_plain(const loop::Definition& definition, const NestSchedule& s) {
  const bool sums = definition.accumulators.size() == 1 &&
                    definition.accumulators[0].combine == loop::Combine::sum &&
                    definition.accumulators[0].type.scalar == loop::Scalar::f32;
  int64_t steps = 1;
  for (const Axis& axis : definition.reduce_axes)
    steps *= static_extent(axis).value_or(kFewestSteps);
  return sums && steps >= kFewestSteps && s.lane_axis.empty() && s.jam_axis.empty() &&
         s.transposed_axis.empty() && !s.interleaved && s.block_axes.empty() &&
         s.taken.axes.empty() && s.unpacked.empty() && s.fetches.empty() && !s.by_columns &&
         s.packed.size() == 1 && !main_packing(s).empty() &&
         !s.packed.begin()->second.at_run_time && !s.vector_segments.empty();
}

/// Whether the operands of neighbouring steps along the axis lie side by side, and no condition
/// tells the steps apart.
bool may_split(const loop::Definition& definition, const loop::Kernel& kernel,
               const NestSchedule& schedule, const Axis& axis) {
  const int64_t extent = static_extent(axis).value_or(0);
  if (extent % kSplits != 0 || extent <= kSplits || schedule.unrolled.contains(axis.name)) {
    return false;
  }
  std::vector<Expr> guard;
  without_guard(definition.accumulators[0], guard);
  bool fits = std::ranges::none_of(guard, [&](const Expr& e) { return mentions(e, axis.name); });
  bool any = false;
  for_each_access(definition, [&](const loop::ExprNode& read, bool in_reduction) {
    if (!in_reduction || schedule.packed.contains(read.name)) return;
    const Expr flat = loop::flat_index(kernel.find(read.name)->shape, read.args);
    const std::optional<int64_t> c = coefficient(flat, axis.name);
    fits = fits && c && (*c == 0 || *c == 1) && !reads_memory(flat) &&
           !mentions(flat, schedule.vector_axis);
    any = any || (c && *c == 1);
  });
  return fits && any;
}

}  // namespace

std::string split_axis_of(const loop::Definition& definition, const loop::Kernel& kernel,
                          const TargetInfo& target, const NestSchedule& schedule) {
  if (target.vector_bits == 0 || !is_plain(definition, schedule)) return "";
  const VectorSegment& last = schedule.vector_segments.back();
  const int32_t lanes = target.vector_lanes(sizeof(float)), used = last.lanes - last.spare;
  if (last.count != 1 || last.vectors != 1 || kSplits * used != lanes ||
      schedule.largest_tile() < kFewestRows) {
    return "";
  }
  for (const Axis& axis : definition.reduce_axes) {
    if (may_split(definition, kernel, schedule, axis)) return axis.name;
  }
  return "";
}

void split_sums(const loop::Definition& definition, const loop::Kernel& kernel,
                const TargetInfo& target, const std::function<NestSchedule(TileLimits)>& choose,
                NestSchedule& schedule) {
  if (!is_plain(definition, schedule)) return;
  // The last register of a tile's row is to be a tile of its own.
  NestSchedule apart = schedule;
  if (const int64_t vectors = schedule.vector_segments.back().vectors; vectors > 1) {
    TileLimits limits;
    limits.vectors = vectors - 1;
    apart = choose(limits);
    apart.fetched = schedule.fetched;
  }
  apart.split_axis = split_axis_of(definition, kernel, target, apart);
  if (apart.split_axis.empty()) return;
  VectorSegment& last = apart.vector_segments.back();
  last = {last.begin, 1, 1, target.vector_lanes(sizeof(float))};
  last.splits = kSplits;
  schedule = std::move(apart);
}

}  // namespace backcast
