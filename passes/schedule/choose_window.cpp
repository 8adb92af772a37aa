// The taps of a window along the tile as the innermost, unrolled loop: a value that several
// elements of the tile read is then loaded once, and the register tile is bound by arithmetic, not
// by loads.
#include <algorithm>

#include "passes/lower/definition_cost.h"
#include "passes/schedule/affine.h"
#include "passes/schedule/chooser.h"
#include "passes/schedule/window.h"

namespace backcast {

using loop::Axis;
using loop::Expr;

int64_t window_step(const loop::Definition& definition, const loop::Kernel& kernel,
                    const std::string& axis, const Axis& taps) {
  const int64_t count = static_extent(taps).value_or(0);
  int64_t step = 0;
  bool fits = count > 1;
  for_each_access(definition, [&](const loop::ExprNode& read, bool in_reduction) {
    if (!in_reduction) return;
    Expr flat = loop::flat_index(kernel.find(read.name)->shape, read.args);
    std::optional<int64_t> along = coefficient(flat, axis), tap = coefficient(flat, taps.name);
    fits = fits && along && tap;
    if (!fits || *along == 0) return;
    fits = *tap > 0 && *along > 0 && *along % *tap == 0 && *along / *tap < count;
    fits = fits && (step == 0 || step == *along / *tap);
    if (fits) step = *along / *tap;
  });
  return fits ? step : 0;
}

const Axis* window_taps(const loop::Definition& definition, const loop::Kernel& kernel,
                        const NestSchedule& schedule) {
  const std::vector<std::string>& order = schedule.reduce_order;
  if (order.empty() || !schedule.unrolled.count(order.back()) || schedule.jam > 1) return nullptr;
  for (const Axis& axis : definition.reduce_axes) {
    if (axis.name != order.back()) continue;
    return window_step(definition, kernel, schedule.tile_axis, axis) > 0 ? &axis : nullptr;
  }
  return nullptr;
}

/// The guards on the axis can be decided tile by tile: static, and each with reduction axes that
/// are not too long for it.
bool Chooser::borders_decidable(const std::string& axis) const {
  // Where the axis is the shorter one it is the window, and jammed.
  const int64_t longest = std::max(kUnrolledTaps, std::min(kLongestBorder, extent(axis) - 1));
  for (const Expr& part : conditions_) {
    if (!mentions(part, axis)) continue;
    if (part->kind != loop::ExprKind::binary ||
        (part->op != loop::Op::ge && part->op != loop::Op::lt)) {
      return false;
    }
    for (const Axis& other : definition_.axes) {
      if (other.name != axis && mentions(part, other.name)) return false;
    }
    for (const Axis& r : definition_.reduce_axes) {
      if (mentions(part, r.name) && extent(r.name) > longest) return false;
    }
    std::map<std::string, int64_t> zeros{{axis, 0}};
    for (const Axis& r : definition_.reduce_axes) zeros[r.name] = 0;
    if (!evaluate(part->args[0] - part->args[1], zeros)) return false;
  }
  return true;
}

/// Vectors of a row of the tile that make whole lines, where the tile's operands come from beyond
/// the second cache: parts of lines come several times, and no prefetcher follows.
int64_t Chooser::fewest_vectors() const {
  constexpr int64_t kLineBytes = 64;
  if (window_taps_ == 1 || target_.l2_bytes == 0) return 1;
  const bool far = std::any_of(accesses_.begin(), accesses_.end(), [&](const Access& a) {
    if (!a.in_reduction || coefficient(a.flat, schedule_.vector_axis) != 1) return false;
    if (!mentions(a.flat, schedule_.tile_axis)) return false;
    return static_bytes(*kernel_.find(a.buffer)).value_or(0) > target_.l2_bytes / 2;
  });
  const int64_t line = kLineBytes / byte_size(loop::element_of(scalar_));
  return far ? std::min(line, extent(schedule_.vector_axis)) / lanes_ : 1;
}

/// Only the tile's axis is guarded together with these taps.
bool Chooser::may_share_window(const Axis& taps) const {
  if (extent(taps.name) > kUnrolledTaps || definition_.reduce_axes.size() < 2) return false;
  const auto [known, fresh] = shared_windows_.try_emplace({schedule_.tile_axis, taps.name}, false);
  if (!fresh) return known->second;
  for (const Expr& part : conditions_) {
    if (mentions(part, taps.name) && !mentions(part, schedule_.tile_axis)) return false;
  }
  known->second = window_step(definition_, kernel_, schedule_.tile_axis, taps) > 0;
  return known->second;
}

/// Sizes are weighed with these taps innermost; null: with none.
void Chooser::share_window(const Axis* taps) {
  window_taps_ = window_step_ = 1;
  if (taps == nullptr) return;
  window_taps_ = extent(taps->name);
  window_step_ = window_step(definition_, kernel_, schedule_.tile_axis, *taps);
}

// What the model does not see: borders are cheaper in this form; and a broadcast that serves
// several vectors is in a register, where compilers keep it for the next tap that reads the same.
constexpr double kKeptBroadcasts = 1.05;
// Fewer sums, no more than the units' latency asks for, have none to wait with.
constexpr double kNoSpareSums = 0.9;
// Without vectors borders cost what they cost anyway.
constexpr double kScalar = 0.98;

/// The reduction axes as the operand lies in memory that vectors come from, for every tile anew and
/// from beyond the first cache: prefetchers follow nothing else. Constants follow any order.
std::vector<Axis> Chooser::streaming_order() const {
  if (lanes_ == 1 || target_.l2_bytes == 0) return definition_.reduce_axes;
  for (const Access& a : accesses_) {
    if (!is_row_of_all_tiles(a)) continue;
    if (static_bytes(*kernel_.find(a.buffer)).value_or(0) <= target_.l1_bytes) continue;
    const bool affine =
        std::all_of(definition_.reduce_axes.begin(), definition_.reduce_axes.end(),
                    [&](const Axis& axis) { return coefficient(a.flat, axis.name).has_value(); });
    if (affine) return in_memory_order(a);
  }
  return definition_.reduce_axes;
}

/// Of the largest tile.
int64_t Chooser::sums() const {
  int64_t vectors = 1;
  for (const VectorSegment& c : schedule_.vector_segments) vectors = std::max(vectors, c.vectors);
  return schedule_.largest_tile() * vectors;
}

/// Sums over constants are regrouped here and nowhere else: the packed constant follows the order
/// of the loops at no cost.
void Chooser::choose_window() {
  if (general_ || schedule_.tile_axis.empty() || schedule_.jam > 1) return;
  for (const Axis& taps : definition_.reduce_axes) {
    if (!may_share_window(taps)) continue;
    const NestSchedule plain = schedule_;
    const double before = direct_cycles();
    const int64_t most = sums(), asked = fewest_sums();
    share_window(&taps);
    schedule_.reduce_order.clear();
    for (const Axis& axis : streaming_order()) {
      if (axis.name != taps.name) schedule_.reduce_order.push_back(axis.name);
    }
    schedule_.reduce_order.push_back(taps.name);
    schedule_.unrolled = {taps.name};
    choose_sizes();
    const bool keeps = !plain.vector_segments.empty() && plain.vector_segments[0].vectors > 1;
    const bool waits = sums() < most && sums() <= asked;
    const double gain = lanes_ == 1 ? kScalar : waits ? kNoSpareSums : keeps ? kKeptBroadcasts : 1;
    if (direct_cycles() <= before * gain) return;
    schedule_ = plain;
    share_window(nullptr);
  }
}

}  // namespace backcast
