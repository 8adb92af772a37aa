// See fetch_ahead.h.
#include "passes/schedule/fetch_ahead.h"

#include <algorithm>

#include "passes/schedule/affine.h"
#include "passes/schedule/expansion.h"

namespace backcast {

using loop::Axis;
using loop::Expr;
using loop::Stmt;

namespace {

constexpr int64_t kLineBytes = 64;
// Where so many rows share a panel, waiting for it is nothing beside computing; where one reads it,
// nothing but waiting is left, and the machine sees what is read in order.
constexpr int64_t kFewRows = 2, kManyRows = 1024;

bool chooses_panel(const NestSchedule& schedule, const Packing& packing, const std::string& axis) {
  return axis == schedule.vector_axis || schedule.is_block_axis(axis) ||
         std::find(packing.outer.begin(), packing.outer.end(), axis) != packing.outer.end();
}

}  // namespace

std::string constant_to_fetch(const loop::Definition& definition, const NestSchedule& schedule,
                              int64_t program_bytes, const TargetInfo& target) {
  // What is known of the second cache's size is a lower bound.
  if (target.l2_bytes == 0 || program_bytes <= 2 * target.l2_bytes) return "";
  const std::string name = main_packing(schedule);
  if (!schedule.lane_axis.empty() || !schedule.jam_axis.empty() || name.empty() ||
      !schedule.has_vectors()) {
    return "";
  }
  const Packing& packing = schedule.packed.at(name);
  int64_t rows = 1;
  for (const Axis& axis : definition.axes) {
    if (chooses_panel(schedule, packing, axis.name)) continue;
    const int64_t extent = static_extent(axis).value_or(kManyRows);
    rows = extent >= kManyRows ? kManyRows : std::min(rows * extent, kManyRows);
  }
  return packing.at_run_time || rows < kFewRows || rows >= kManyRows ? "" : name;
}

/// The next panel's share of this step of this tile. Behind the last panel lie the constants of the
/// kernels that follow.
void Expansion::fetch_ahead(const Bindings& bindings, const Bindings& reduce,
                            std::vector<Stmt>& body) const {
  if (schedule_.fetched.empty()) return;
  const Packing& packing = schedule_.packed.at(schedule_.fetched);
  Bindings first = bindings;
  Expr step = Expr(0), row = Expr(0);
  int64_t steps = 1, rows = 1;
  for (const Axis& axis : reduce_axes_) {
    first[axis.name] = Expr(0);
    const auto at = reduce.find(axis.name);
    if (at == reduce.end()) continue;  // taps, unrolled around the updates
    if (schedule_.unrolled.count(axis.name)) {
      if (!loop::is_constant(at->second, 0)) return;
      continue;
    }
    const int64_t at_once = steps_at_once(axis.name);
    const int64_t extent = *static_extent(axis) / at_once;
    step = step * Expr(extent) + loop::floor_div(at->second, Expr(at_once));
    steps *= extent;
  }
  for (const std::string& name : schedule_.order) {
    if (chooses_panel(schedule_, packing, name)) continue;
    const int64_t extent = *static_extent(*axes_.at(name));
    row = row * Expr(extent) + (name == schedule_.tile_axis ? tile_base_ : bindings.at(name));
    rows *= extent;
  }
  const auto share = [](int64_t whole, int64_t parts) { return (whole + parts - 1) / parts; };
  const int64_t panel = packing.reduce_count() / schedule_.blocks * packing.row(*segment_);
  const int64_t by_row = share(panel, rows), by_step = share(by_row * tile_size(), steps);
  const loop::Scalar scalar = kernel_.find(schedule_.fetched)->element;
  const int64_t line = kLineBytes / byte_size(loop::element_of(scalar));
  // The blocks of one panel lie one after another.
  const int64_t ahead = schedule_.columns_axis.empty() ? panel : panel * schedule_.blocks;
  const Expr next = packed_index(schedule_.fetched, first, Expr(0)) + Expr(ahead) +
                    row * Expr(by_row) + step * Expr(by_step);
  for (int64_t at = 0; at < by_step; at += line) {
    body.push_back(loop::prefetch(packing.parameter, next + Expr(at)));
  }
}

}  // namespace backcast
