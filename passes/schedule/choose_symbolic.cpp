// Tiles along an axis whose length run time tells: tiles of each size take what larger ones left.
// Borders, where taps of a window lie in the padding, go row by row.
#include <algorithm>

#include "ir/loop/visit.h"
#include "passes/schedule/affine.h"
#include "passes/schedule/chooser.h"
#include "passes/schedule/symbolic_strips.h"

namespace backcast {

using loop::Axis;
using loop::Expr;

/// Elements of the axis, some where run time decides.
int64_t Chooser::length_of(const Axis& axis) { return static_extent(axis).value_or(kSomeElements); }

/// Where no tap along the axis lies in the padding; nothing where loops' bounds cannot say so.
std::optional<Chooser::Interior> Chooser::symbolic_interior(const std::string& axis) const {
  Interior interior;
  for (const Expr& part : conditions_) {
    if (!mentions(part, axis)) continue;
    if (part->kind != loop::ExprKind::binary) return std::nullopt;
    const bool is_begin = part->op == loop::Op::ge;
    if (!is_begin && part->op != loop::Op::lt) return std::nullopt;
    if (std::ranges::any_of(definition_.axes, [&](const Axis& other) {
          return other.name != axis && mentions(part, other.name);
        })) {
      return std::nullopt;
    }
    // slope * position + slope of the taps * tap + first, against 0.
    const Expr margin = part->args[0] - part->args[1];
    const int64_t slope = coefficient(margin, axis).value_or(0);
    std::map<std::string, Expr> origin{{axis, Expr(0)}};
    int64_t reach = 0, windows = 0;
    for (const Axis& taps : definition_.reduce_axes) {
      if (!mentions(part, taps.name)) continue;
      const int64_t step = coefficient(margin, taps.name).value_or(0);
      if (step <= 0 || extent(taps.name) < 1 || mentions(part->args[1], taps.name)) {
        return std::nullopt;
      }
      reach += step * (extent(taps.name) - 1);
      origin.emplace(taps.name, Expr(0));
      ++windows;
    }
    if (slope <= 0 || windows != 1) return std::nullopt;
    const Expr first = loop::simplify(loop::substitute(margin, origin));
    if (is_begin) {
      int64_t known = 0;
      if (!loop::as_constant(first, known)) return std::nullopt;
      interior.begin = std::max(interior.begin, (-known + slope - 1) / slope);
    } else {
      const Expr end = loop::floor_div(Expr(slope - 1 - reach) - first, Expr(slope));
      interior.end = interior.end ? loop::min(interior.end, end) : end;
    }
  }
  return interior;
}

std::vector<TileSegment> Chooser::symbolic_tiles(int64_t size) const {
  const std::vector<Axis>& axes = definition_.axes;
  const Expr total = std::ranges::find(axes, schedule_.tile_axis, &Axis::name)->extent;
  const Interior interior = *symbolic_interior(schedule_.tile_axis);
  const auto border = [](const Expr& begin, const Expr& count) {
    TileSegment rows{begin, count};
    rows.clipped = true;
    return rows;
  };
  std::vector<TileSegment> segments;
  Expr begin = Expr(0), end = total;
  if (interior.begin > 0) {
    begin = loop::min(Expr(interior.begin), total);
    segments.push_back(border(Expr(0), begin));
  }
  if (interior.end) end = loop::max(begin, loop::min(interior.end, total));
  for (TileSegment& tiles : tiles_between(begin, end, symbolic_sizes(size))) {
    segments.push_back(std::move(tiles));
  }
  if (interior.end) segments.push_back(border(end, total - end));
  return segments;
}

/// Each size takes what those before left. Pairs of rows are code that small cores do without.
std::vector<int64_t> Chooser::symbolic_sizes(int64_t size) const {
  std::vector<int64_t> sizes{size};
  for (const int64_t smaller : {4, 2, 1}) {
    const bool is_wanted = smaller != 2 || !target_.is_microcontroller();
    if (smaller < size && is_wanted) sizes.push_back(smaller);
  }
  return sizes;
}

/// How many tiles a segment has; where run time decides, as if there were some rows, any number of
/// them left by the segment before.
double Chooser::tiles_in(const std::vector<TileSegment>& segments, size_t s) {
  int64_t count = 0;
  if (loop::as_constant(segments[s].count, count)) return static_cast<double>(count);
  if (segments[s].clipped) return 1;
  const double rows = static_cast<double>(segments[s].size);
  const bool is_first = s == 0 || segments[s - 1].clipped;
  return is_first ? static_cast<double>(kSomeElements) / rows
                  : (static_cast<double>(segments[s - 1].size) / rows - 1) / 2;
}

}  // namespace backcast
