// Operands whose rows lie so far apart that caches do not hold what the next tile reads again. Rows
// a power of two apart fall into few of a cache's sets.
#include <algorithm>
#include <numeric>

#include "passes/lower/definition_cost.h"
#include "passes/schedule/affine.h"
#include "passes/schedule/choose.h"
#include "passes/schedule/chooser.h"
#include "passes/schedule/fetch_operands.h"
#include "passes/schedule/window.h"

namespace backcast {

using loop::Axis;

namespace {

constexpr int64_t kLine = 64;
// What lies behind one way of a cache repeats its sets. A way of the first is a page, on every
// machine that looks up pages beside it; of the second, 1,024 sets on those measured.
constexpr int64_t kWay1 = int64_t{4} << 10, kWay2 = int64_t{64} << 10;
// Cycles that a vector, or the line that a tile's scalars lie in, comes late.
constexpr double kLateVector = 4, kLateLine = 1.5, kLateFromFar = 5;
// What few tiles share has to come anyway.
constexpr double kFewTiles = 3;

/// The bytes that a cache of `size` holds of rows of `width` bytes, `pitch` bytes apart.
double held_bytes(int64_t size, int64_t way, int64_t pitch, int64_t width) {
  const int64_t sets = way / kLine;
  const int64_t starts = pitch % kLine != 0 ? sets : sets / std::gcd(pitch / kLine, sets);
  const int64_t used = std::min(starts * ((width + kLine - 1) / kLine), sets);
  return static_cast<double>(size) * static_cast<double>(used) / static_cast<double>(sets);
}

}  // namespace

bool holds_lines(int64_t places, int64_t pitch, const TargetInfo& target) {
  return static_cast<double>(places * kLine) <=
         held_bytes(target.l1_bytes, kWay1, std::abs(pitch), kLine);
}

/// The steps of the reduction along which an operand moves: how many, and the elements between two.
Chooser::Rows Chooser::rows_of(const Access& a) const {
  Rows rows;
  for (const Axis& axis : definition_.reduce_axes) {
    const int64_t step = std::abs(coefficient(a.flat, axis.name).value_or(0));
    if (step == 0 || extent(axis.name) < 2) continue;
    rows.pitch = rows.pitch == 0 ? step : std::min(rows.pitch, step);
    rows.count *= static_cast<double>(extent(axis.name));
  }
  return rows;
}

/// Whether steps ask ahead for lines of both operands (fetch_operands.h): they come in time then,
/// wherever from.
bool Chooser::asks_ahead() const {
  if (target_.l2_bytes == 0 || schedule_.vector_segments.empty()) return false;
  if (!schedule_.jam_axis.empty() || reduce_axes().empty()) return false;
  if (extent(reduce_axes().back().name) < kFewestFetchedSteps) return false;
  const int64_t rows = schedule_.largest_tile();
  const VectorSegment& columns = schedule_.vector_segments[0];
  const int64_t lines = columns.width() * byte_size(loop::element_of(scalar_)) / kLine;
  const int64_t loads = rows + columns.vectors + lines + 2;
  return has_free_loads(loads, rows * columns.vectors / target_.fma_units);
}

/// What vectors are read from as it lies, by every tile again.
bool Chooser::is_row_of_all_tiles(const Access& a) const {
  return a.in_reduction && !a.constant && coefficient(a.flat, schedule_.vector_axis) == 1 &&
         (schedule_.tile_axis.empty() || !mentions(a.flat, schedule_.tile_axis));
}

/// Rows as long as a block of vectors, too many for the first cache, that no step asks ahead for.
bool Chooser::has_far_rows(const Access& a) const {
  if (lanes_ == 1 || schedule_.vector_segments.empty() || !is_row_of_all_tiles(a)) return false;
  const int64_t element = byte_size(loop::element_of(scalar_));
  const Rows rows = rows_of(a);
  const int64_t width = schedule_.vector_segments[0].width() * element;
  if (rows.pitch * element <= width || asks_ahead()) return false;
  return rows.count * static_cast<double>(width) >
         held_bytes(target_.l1_bytes, kWay1, rows.pitch * element, width);
}

/// Whether the first cache loses rows of a window before the next row of results reads them again,
/// and would keep those of one block of vectors.
bool Chooser::loses_window_rows() const {
  if (lanes_ == 1 || !target_.has_data_cache || schedule_.vector_segments.empty()) return false;
  const int64_t element = byte_size(loop::element_of(scalar_));
  const int64_t width = schedule_.vector_segments[0].width() * element;
  for (const Access& a : accesses_) {
    if (!a.in_reduction || a.constant || coefficient(a.flat, schedule_.vector_axis) != 1) continue;
    const int64_t pitch = rows_of(a).pitch * element;
    for (const Axis& taps : definition_.reduce_axes) {
      const int64_t row = coefficient(a.flat, taps.name).value_or(0) * element;
      const int64_t bytes = extent(taps.name) * row;
      if (pitch == 0 || bytes <= target_.l1_bytes) continue;
      const int64_t lines = bytes / pitch * ((width + kLine - 1) / kLine);
      const double held = held_bytes(target_.l1_bytes, kWay1, pitch, width);
      const bool again =
          std::any_of(definition_.axes.begin(), definition_.axes.end(), [&](const Axis& axis) {
            return !is_tiled(axis.name) && window_step(definition_, kernel_, axis.name, taps) > 0;
          });
      if (again && static_cast<double>(lines * kLine) <= held) return true;
    }
  }
  return false;
}

/// Cycles that a step waits for the scalars of a tile, which are neighbours in rows that come from
/// beyond a cache for every tile anew.
double Chooser::late_scalars(const Access& a) const {
  if (!a.in_reduction || a.constant || lanes_ == 1 || target_.l2_bytes == 0) return 0;
  if (schedule_.tile_axis.empty() || mentions(a.flat, schedule_.vector_axis)) return 0;
  if (coefficient(a.flat, schedule_.tile_axis) != 1 || asks_ahead()) return 0;
  const Rows rows = rows_of(a);
  const int64_t pitch = rows.pitch * byte_size(loop::element_of(scalar_));
  const double bytes = rows.count * static_cast<double>(kLine);
  if (pitch <= kLine || bytes <= held_bytes(target_.l1_bytes, kWay1, pitch, kLine)) return 0;
  return bytes <= held_bytes(target_.l2_bytes, kWay2, pitch, kLine) ? kLateLine : kLateFromFar;
}

/// What far rows add to a nest: they come late, for every tile anew.
double Chooser::far_row_cycles() const {
  double late_vectors = 0, late_steps = 0, vectors = 0, blocks = 0, tiles = 0;
  for (const Access& a : accesses_) {
    if (has_far_rows(a) && !schedule_.packed.count(a.buffer)) late_vectors += kLateVector;
    late_steps += late_scalars(a);
  }
  for (const VectorSegment& c : schedule_.vector_segments) {
    vectors += static_cast<double>(c.count * c.vectors);
    blocks += static_cast<double>(c.count);
  }
  for (const TileSegment& r : schedule_.tile_segments) {
    int64_t count = 8;
    loop::as_constant(r.count, count);
    tiles += static_cast<double>(count);
  }
  tiles = std::max(tiles, 1.0) * outer_points();
  if (tiles <= kFewTiles) return 0;
  return (late_vectors * vectors + late_steps * blocks) * reduce_points() * tiles;
}

}  // namespace backcast
