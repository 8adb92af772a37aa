// See reduction_blocks.h.
#include "passes/schedule/reduction_blocks.h"

#include <algorithm>
#include <set>

#include "ir/loop/visit.h"
#include "passes/lower/definition_cost.h"
#include "passes/schedule/affine.h"

namespace backcast {
namespace {

using loop::Axis;
using loop::Definition;
using loop::Expr;

// Fewer tiles than this bring a constant near only to leave it.
constexpr int64_t kFewestTiles = 3;
// Steps that make the totals' way through memory and back cheap.
constexpr int64_t kFewestSteps = 24;
constexpr int64_t kMostTotalBytes = int64_t{512} << 10;

const Packing* only_packing(const NestSchedule& schedule) {
  if (schedule.packed.size() != 1) return nullptr;
  const Packing& packing = schedule.packed.begin()->second;
  return packing.at_run_time || !packing.outer.empty() ? nullptr : &packing;
}

/// One block of tiles per block of the vector axis, which stands outside of everything.
bool has_plain_tiles(const NestSchedule& schedule) {
  return !schedule.order.empty() && schedule.order[0] == schedule.vector_axis &&
         schedule.lane_axis.empty() && schedule.jam_axis.empty() &&
         schedule.transposed_axis.empty() && !schedule.vector_segments.empty() &&
         schedule.vector_segments[0].lanes > 1;
}

/// Tiles that read the same panel; 0 when run time decides.
int64_t tiles_of(const Definition& definition, const NestSchedule& schedule) {
  int64_t tiles = 1;
  for (const Axis& axis : definition.axes) {
    if (axis.name == schedule.vector_axis || axis.name == schedule.tile_axis) continue;
    tiles *= static_extent(axis).value_or(0);
  }
  int64_t along = schedule.tile_segments.empty() ? 1 : 0;
  for (const TileSegment& segment : schedule.tile_segments) {
    int64_t count = 0;
    if (!loop::as_constant(segment.count, count)) return 0;
    along += count;
  }
  return tiles * along;
}

bool is_guarded(const Definition& definition, const std::string& axis) {
  bool found = false;
  for (const loop::Accumulator& acc : definition.accumulators) {
    loop::visit(acc.value, [&](const Expr& e) {
      found = found || (e->kind == loop::ExprKind::if_then_else && mentions(e->args[0], axis));
    });
  }
  return found;
}

/// The longest reduction axis that stays a loop.
const Axis* longest_axis(const Definition& definition, const NestSchedule& schedule) {
  const Axis* longest = nullptr;
  for (const Axis& axis : definition.reduce_axes) {
    const std::optional<int64_t> extent = static_extent(axis);
    if (!extent) return nullptr;
    if (schedule.unrolled.count(axis.name) || is_guarded(definition, axis.name)) continue;
    if (longest == nullptr || *extent > *static_extent(*longest)) longest = &axis;
  }
  return longest;
}

}  // namespace

Definition cut_axis(const Definition& definition, const std::string& axis, int64_t size,
                    const std::string& block) {
  Definition cut = definition;
  for (std::vector<Axis>* axes : {&cut.axes, &cut.reduce_axes}) {
    for (Axis& a : *axes) {
      if (a.name != axis) continue;
      const int64_t blocks = *static_extent(a) / size;
      a.extent = Expr(size);
      axes->insert(axes->begin(), Axis{block, Expr(blocks)});
      break;
    }
  }
  const std::map<std::string, Expr> whole = {
      {axis, loop::var(block) * Expr(size) + loop::var(axis)}};
  for (loop::Accumulator& acc : cut.accumulators) acc.value = loop::substitute(acc.value, whole);
  for (loop::DefinitionOutput& output : cut.outputs) {
    output.value = loop::substitute(output.value, whole);
    for (Expr& index : output.indices) index = loop::substitute(index, whole);
  }
  return cut;
}

std::string fresh_axis(const Definition& definition, const std::string& base) {
  std::set<std::string> taken;
  for (const Axis& axis : definition.axes) taken.insert(axis.name);
  for (const Axis& axis : definition.reduce_axes) taken.insert(axis.name);
  std::string name = base + "_block";
  while (taken.count(name)) name += "_";
  return name;
}

std::optional<ReductionBlocks> cut_reduction(const Definition& definition,
                                             const NestSchedule& schedule,
                                             const TargetInfo& target) {
  const Packing* packing = only_packing(schedule);
  if (packing == nullptr || !has_plain_tiles(schedule)) return std::nullopt;
  if (definition.accumulators.size() != 1 || tiles_of(definition, schedule) < kFewestTiles) {
    return std::nullopt;
  }
  int64_t width = 0, steps = packing->reduce_count(), totals = 1;
  for (const VectorSegment& segment : schedule.vector_segments) {
    width = std::max(width, segment.width());
  }
  for (const Axis& axis : definition.axes) {
    const bool columns = axis.name == schedule.vector_axis;
    totals *= columns ? schedule.columns() : static_extent(axis).value_or(kMostTotalBytes);
    if (totals > kMostTotalBytes) return std::nullopt;
  }
  const int64_t bytes = byte_size(loop::element_of(definition.accumulators[0].type.scalar));
  const int64_t constant = packed_count(schedule, schedule.packed.begin()->first) * bytes;
  const int64_t panel = steps * width * bytes, fits = target.l1_bytes / 2;
  if (target.l2_bytes == 0 || constant * 2 <= target.l2_bytes) return std::nullopt;
  if (panel * 4 <= target.l1_bytes * 3) return std::nullopt;
  if (totals * bytes > kMostTotalBytes) return std::nullopt;
  const Axis* axis = longest_axis(definition, schedule);
  if (axis == nullptr) return std::nullopt;
  const int64_t extent = *static_extent(*axis);
  int64_t size = 0;
  for (int64_t d = 1; d < extent; ++d) {
    if (extent % d == 0 && panel / extent * d <= fits) size = d;
  }
  if (size == 0 || steps / extent * size < kFewestSteps) return std::nullopt;
  const std::string block = fresh_axis(definition, axis->name);
  return ReductionBlocks{cut_axis(definition, axis->name, size, block), block, extent / size,
                         totals};
}

bool order_blocks(NestSchedule& schedule, const ReductionBlocks& cut, const std::string& totals) {
  const bool packs = only_packing(schedule) != nullptr;
  if (!packs || !has_plain_tiles(schedule) || schedule.unrolled.count(cut.axis)) return false;
  schedule.order.insert(schedule.order.begin() + 1, cut.axis);
  schedule.block_axes = {cut.axis};
  schedule.blocks = cut.blocks;
  schedule.totals = totals;
  return true;
}

}  // namespace backcast
