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
// Memory for totals as a part of the constant's.
constexpr int64_t kPartOfConstant = 16;
constexpr int64_t kLineBytes = 64;
// Groups of columns, for as many threads.
constexpr int64_t kFewestGroups = 4;

/// The constant, which only groups of columns may divide.
const Packing* only_packing(const NestSchedule& schedule, const std::string& columns) {
  const std::string name = main_packing(schedule);
  if (name.empty()) return nullptr;
  const Packing& packing = schedule.packed.at(name);
  const bool is_plain = std::all_of(packing.outer.begin(), packing.outer.end(),
                                    [&](const std::string& axis) { return axis == columns; });
  return packing.at_run_time || !is_plain ? nullptr : &packing;
}

/// One block of tiles per block of the vector axis, which stands outside of everything.
bool has_plain_tiles(const NestSchedule& schedule) {
  return !schedule.order.empty() && schedule.order[0] == schedule.vector_axis &&
         schedule.lane_axis.empty() && schedule.jam_axis.empty() &&
         schedule.transposed_axis.empty() && schedule.has_vectors();
}

/// Tiles that read the same panel, at most.
int64_t tiles_of(const Definition& definition, const NestSchedule& schedule,
                 const SymbolRanges& symbols) {
  int64_t tiles = 1, along = schedule.tile_segments.empty() ? 1 : 0;
  for (const TileSegment& segment : schedule.tile_segments) {
    int64_t count = 0;
    loop::as_constant(segment.count, count);
    along += count;
  }
  for (const Axis& axis : definition.axes) {
    if (axis.name == schedule.vector_axis) continue;
    const bool is_known = axis.name != schedule.tile_axis || !static_extent(axis);
    if (is_known) tiles *= most_of(axis, symbols);
    if (axis.name == schedule.tile_axis && is_known) {
      along = 1;
      tiles /= schedule.largest_tile();
    }
  }
  return tiles * along;
}

/// Bytes of what is read beside the constant, at most.
int64_t operand_bytes(const Definition& definition, const loop::Kernel& kernel,
                      const std::string& constant, const SymbolRanges& symbols) {
  int64_t bytes = 0;
  for_each_access(definition, [&](const loop::ExprNode& read, bool in_reduction) {
    if (!in_reduction || read.name == constant) return;
    const loop::BufferParam& param = *kernel.find(read.name);
    const TensorType type{loop::element_of(param.element), param.shape};
    bytes = std::max(bytes, type.element_count().range(symbols).max * byte_size(type.element));
  });
  return bytes;
}

/// The most columns, a part of all and a block or more, of so many that may go together; 0 where
/// there is no such part.
int64_t columns_together(const Definition& definition, const NestSchedule& schedule, int64_t most) {
  const int32_t lanes = schedule.vector_segments[0].lanes;
  const int64_t width = schedule.vector_segments[0].width();
  int64_t found = 0;
  for (const Axis& axis : definition.axes) {
    if (axis.name != schedule.vector_axis) continue;
    const int64_t all = static_extent(axis).value_or(0);
    for (int64_t part = lanes; part * kFewestGroups <= all && part <= most; part += lanes) {
      if (all % part == 0 && part >= width) found = part;
    }
  }
  return found;
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
                                             const loop::Kernel& kernel,
                                             const NestSchedule& schedule,
                                             const SymbolRanges& symbols,
                                             const TargetInfo& target) {
  const Packing* packing = only_packing(schedule, "");
  if (packing == nullptr || !has_plain_tiles(schedule)) return std::nullopt;
  if (definition.accumulators.size() != 1 ||
      tiles_of(definition, schedule, symbols) < kFewestTiles) {
    return std::nullopt;
  }
  int64_t width = 0, steps = packing->reduce_count();
  for (const VectorSegment& segment : schedule.vector_segments) {
    width = std::max(width, segment.width());
  }
  const int64_t bytes = byte_size(loop::element_of(definition.accumulators[0].type.scalar));
  const std::string name = main_packing(schedule);
  const int64_t constant = packed_count(schedule, name) * bytes;
  const int64_t panel = steps * width * bytes, fits = target.l1_bytes / 2;
  if (target.l2_bytes == 0 || constant * 2 <= target.l2_bytes) return std::nullopt;
  if (panel * 4 <= target.l1_bytes * 3) return std::nullopt;
  int64_t rows = 1;
  std::map<std::string, int64_t> most;
  for (const Axis& axis : definition.axes) {
    if (axis.name == schedule.vector_axis) continue;
    const int64_t extent = most_of(axis, symbols);
    rows *= extent;
    if (!static_extent(axis)) most[axis.name] = extent;
  }
  const int64_t room = std::max(kMostTotalBytes, constant / kPartOfConstant);
  const bool is_far = operand_bytes(definition, kernel, name, symbols) * 2 > target.l2_bytes;
  const int64_t together =
      is_far ? columns_together(definition, schedule, target.l2_bytes / 4 / bytes / rows) : 0;
  const int64_t totals = rows * schedule.columns();
  if (totals * bytes > (together > 0 ? room : kMostTotalBytes)) return std::nullopt;
  const Axis* axis = longest_axis(definition, schedule);
  if (axis == nullptr) return std::nullopt;
  const int64_t extent = *static_extent(*axis);
  int64_t size = 0;
  for (int64_t d = 1; d < extent; ++d) {
    if (extent % d == 0 && panel / extent * d <= fits) size = d;
  }
  if (size == 0 || steps / extent * size < kFewestSteps) return std::nullopt;
  const std::string block = fresh_axis(definition, axis->name);
  ReductionBlocks cut{cut_axis(definition, axis->name, size, block), block, extent / size, totals};
  if (!most.empty()) {
    // Row by row it shows that no two groups meet, however many rows there are. Not a power of two,
    // whose multiples share a set of the first cache.
    cut.totals_row = schedule.columns() + kLineBytes / bytes;
    cut.totals = rows * cut.totals_row;
  }
  cut.most = std::move(most);
  if (together > 0) {
    cut.columns = fresh_axis(definition, schedule.vector_axis);
    cut.definition = cut_axis(cut.definition, schedule.vector_axis, together, cut.columns);
  }
  return cut;
}

bool order_blocks(NestSchedule& schedule, const ReductionBlocks& cut, const std::string& totals) {
  const bool packs = only_packing(schedule, cut.columns) != nullptr;
  std::erase(schedule.order, cut.columns);
  if (!packs || !has_plain_tiles(schedule) || schedule.unrolled.count(cut.axis)) return false;
  if (cut.columns.empty()) {
    schedule.order.insert(schedule.order.begin() + 1, cut.axis);
  } else {
    schedule.order.insert(schedule.order.begin(), {cut.columns, cut.axis});
  }
  schedule.columns_axis = cut.columns;
  schedule.totals_row = cut.totals_row;
  schedule.most = cut.most;
  schedule.block_axes = {cut.axis};
  schedule.blocks = cut.blocks;
  schedule.totals = totals;
  return true;
}

}  // namespace backcast
