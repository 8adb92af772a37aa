// See row_blocks.h.
#include "passes/schedule/row_blocks.h"

#include <algorithm>
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

// Rows that make the totals' way through memory and back cheap.
constexpr int64_t kFewestRows = 8;
// More tiles than this share what one of them has fetched.
constexpr int64_t kMostTiles = 2;

/// Tiles along the tile axis; 0 when run time decides.
int64_t tiles_of(const NestSchedule& schedule) {
  int64_t tiles = schedule.tile_segments.empty() ? 1 : 0;
  for (const TileSegment& segment : schedule.tile_segments) {
    int64_t count = 0;
    if (!loop::as_constant(segment.count, count)) return 0;
    tiles += count;
  }
  return tiles;
}

/// Vectors of results along one axis, rows along another at most, and no operand rearranged.
bool is_plain(const Definition& definition, const NestSchedule& schedule) {
  if (definition.accumulators.size() != 1 || definition.reduce_axes.size() != 1 ||
      definition.accumulators[0].combine != loop::Combine::sum) {
    return false;
  }
  for (const Axis& axis : definition.axes) {
    const bool known = axis.name == schedule.vector_axis || axis.name == schedule.tile_axis;
    if (!static_extent(axis) || (!known && static_extent(axis) != 1)) return false;
  }
  return schedule.has_vectors() && schedule.order.size() > 0 && schedule.packed.empty() &&
         schedule.lane_axis.empty() && schedule.jam_axis.empty() &&
         schedule.outer_jam_axis.empty() && schedule.transposed_axis.empty() &&
         schedule.unrolled.empty() && schedule.chains == 1 && schedule.block_axes.empty();
}

/// The elements of a row of the only operand that lies row after row, of at least two blocks of
/// columns, and that the first cache does not hold; 0 when there is none.
int64_t row_of(const Definition& definition, const loop::Kernel& kernel,
               const NestSchedule& schedule, const TargetInfo& target, int64_t& element) {
  const std::string& step = definition.reduce_axes[0].name;
  int64_t row = 0;
  bool known = true;
  for_each_access(definition, [&](const loop::ExprNode& read, bool in_reduction) {
    const loop::BufferParam& param = *kernel.find(read.name);
    const Expr flat = loop::flat_index(param.shape, read.args);
    const auto along = [&](const std::string& axis) { return coefficient(flat, axis); };
    if (!in_reduction || !mentions(flat, schedule.vector_axis)) return;
    element = byte_size(loop::element_of(param.element));
    known = known && row == 0 && along(schedule.vector_axis) == 1 && !reads_memory(flat) &&
            (schedule.tile_axis.empty() || along(schedule.tile_axis) == 0);
    row = known ? along(step).value_or(0) : 0;
  });
  const int64_t bytes = row * static_extent(definition.reduce_axes[0]).value_or(0) * element;
  const bool whole = row == schedule.columns();  // nothing lies between two rows
  return known && whole && bytes > target.l1_bytes && row >= 2 * schedule.vector_segments[0].width()
             ? row
             : 0;
}

}  // namespace

std::optional<OperandBlocks> cut_rows(const Definition& definition, const loop::Kernel& kernel,
                                      const NestSchedule& chosen, const TargetInfo& target) {
  if (target.l2_bytes == 0 || !is_plain(definition, chosen)) return std::nullopt;
  const int64_t tiles = tiles_of(chosen);
  if (tiles < 1 || tiles > kMostTiles) return std::nullopt;
  int64_t element = 4;
  const int64_t row = row_of(definition, kernel, chosen, target, element);
  const int64_t extent = static_extent(definition.reduce_axes[0]).value_or(0);
  int64_t rows = 0;
  for (int64_t d = kFewestRows; row > 0 && d < extent; ++d) {
    const bool fits = d * row * element * 4 <= target.l1_bytes * 3;
    if (fits && extent % d == 0 && d % chosen.reduce_unroll == 0) rows = d;
  }
  if (rows == 0) return std::nullopt;
  OperandBlocks result{definition, chosen, 1};
  for (const Axis& axis : definition.axes) result.totals *= *static_extent(axis);
  const std::string name = definition.reduce_axes[0].name;
  std::string block = name + "_block";
  for (const Axis& axis : definition.axes) block += axis.name == block ? "_" : "";
  loop::Accumulator& sum = result.definition.accumulators[0];
  sum.value =
      loop::substitute(sum.value, {{name, loop::var(block) * Expr(rows) + loop::var(name)}});
  result.definition.reduce_axes = {Axis{block, Expr(extent / rows)}, Axis{name, Expr(rows)}};
  result.schedule.order.insert(result.schedule.order.begin(), block);
  result.schedule.block_axes = {block};
  result.schedule.blocks = extent / rows;
  return result;
}

}  // namespace backcast
