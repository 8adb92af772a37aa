#include "passes/schedule/symbolic_strips.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>

#include "passes/lower/definition_cost.h"
#include "passes/schedule/affine.h"
#include "passes/schedule/choose.h"
#include "passes/schedule/partition.h"

namespace backcast {

using loop::Axis;
using loop::Definition;
using loop::Expr;

namespace {

// What wide strips leave is taken so many at a time.
constexpr int64_t kNarrow = 4;

/// As if every axis had a constant extent.
Definition with_nominal_extents(Definition definition) {
  for (std::vector<Axis>* axes : {&definition.axes, &definition.reduce_axes}) {
    for (Axis& axis : *axes) {
      if (!static_extent(axis)) axis.extent = Expr(kSomeElements);
    }
  }
  return definition;
}

/// An axis to cut, and what into: the widest strips first, single elements last.
struct Cut {
  std::string axis;
  std::vector<int64_t> widths;
};

/// Where vectors or columns of the schedule run along an axis of `open`.
std::optional<Cut> cut_of(const NestSchedule& schedule, bool is_reduction,
                          const std::set<std::string>& open) {
  if (schedule.vector_segments.empty()) return std::nullopt;
  const VectorSegment& columns = schedule.vector_segments[0];
  const bool fills = columns.lanes > 1 || is_reduction;
  if (fills && columns.width() > 1 && open.contains(schedule.vector_axis)) {
    Cut cut{schedule.vector_axis, {columns.width()}};
    if (columns.lanes > 1 && columns.lanes < columns.width()) cut.widths.push_back(columns.lanes);
    if (columns.lanes > kNarrow) cut.widths.push_back(kNarrow);
    cut.widths.push_back(1);
    return cut;
  }
  if (!open.contains(schedule.transposed_axis)) return std::nullopt;
  return Cut{schedule.transposed_axis, {schedule.largest_tile(), 1}};
}

/// Whether some operand of the sums is the same along the axis: rows of a tile share it.
bool shares_operands(const Definition& definition, const Axis& axis) {
  bool shares = false;
  for_each_access(definition, [&](const loop::ExprNode& read, bool adds) {
    shares = shares || (adds && std::ranges::none_of(read.args, [&](const Expr& index) {
                          return mentions(index, axis.name);
                        }));
  });
  return shares;
}

/// The definition for these strips of an axis, which runs along each.
Definition strips_of(const Definition& definition, const std::string& name,
                     const TileSegment& strips) {
  const std::string around = name + "_strip";
  const Expr strip = strips.size == 1 ? Expr(0) : loop::var(around) * Expr(strips.size);
  Definition part = moved(definition, {{name, strips.begin + strip + loop::var(name)}});
  const auto at = std::ranges::find(part.axes, name, &Axis::name);
  if (strips.size == 1) {
    at->extent = strips.count;
    return part;
  }
  at->extent = Expr(strips.size);
  // Rows that share what a strip reads come inside of it.
  const auto rows = std::find_if(
      part.axes.begin(), at, [&](const Axis& axis) { return shares_operands(definition, axis); });
  part.axes.insert(rows, Axis{around, strips.count});
  return part;
}

/// `open`: axes that may be cut.
std::vector<Definition> in_strips(const Definition& definition, std::set<std::string> open,
                                  const std::function<NestSchedule(const Definition&)>& choose) {
  if (open.empty()) return {definition};
  const NestSchedule schedule = choose(with_nominal_extents(definition));
  const std::optional<Cut> cut = cut_of(schedule, !definition.reduce_axes.empty(), open);
  if (!cut) return {definition};
  open.erase(cut->axis);
  const Expr end = std::ranges::find(definition.axes, cut->axis, &Axis::name)->extent;
  std::vector<Definition> parts;
  for (const TileSegment& strips : tiles_between(Expr(0), end, cut->widths)) {
    const Definition part = strips_of(definition, cut->axis, strips);
    for (Definition& finer : in_strips(part, open, choose)) parts.push_back(std::move(finer));
  }
  return parts;
}

}  // namespace

std::vector<TileSegment> tiles_between(const Expr& begin, const Expr& end,
                                       const std::vector<int64_t>& sizes) {
  std::vector<TileSegment> tiles;
  Expr left = end - begin;
  for (const int64_t size : sizes) {
    const Expr at = tiles.empty() ? begin : end - left;
    tiles.push_back({at, loop::floor_div(left, Expr(size)), size});
    left = loop::floor_mod(left, Expr(size));
  }
  return tiles;
}

std::vector<Definition> symbolic_strips(
    const Definition& definition, const std::function<NestSchedule(const Definition&)>& choose) {
  std::set<std::string> open;
  for (const Axis& axis : definition.axes) {
    if (!static_extent(axis)) open.insert(axis.name);
  }
  return in_strips(definition, std::move(open), choose);
}

}  // namespace backcast
