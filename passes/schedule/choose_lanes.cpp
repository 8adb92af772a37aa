// Ways to fill vectors that need no constant operand: lanes along a reduction axis, blocks turned
// in registers, operands rearranged at run time. And the choice between them.
#include <algorithm>
#include <cmath>
#include <limits>

#include "ir/loop/visit.h"
#include "passes/lower/definition_cost.h"
#include "passes/schedule/affine.h"
#include "passes/schedule/choose.h"
#include "passes/schedule/chooser.h"
#include "passes/schedule/lanes.h"
#include "passes/schedule/panel.h"
#include "passes/schedule/split_sums.h"

namespace backcast {

using loop::Axis;
using loop::Expr;
using loop::Scalar;

/// Half of every vector or more, and nothing else fills them.
bool Chooser::leaves_lanes_empty(const NestSchedule& schedule) const {
  return extent(schedule.vector_axis) * 2 <= vector_lanes() &&
         split_axis_of(definition_, kernel_, target_, schedule).empty();
}

bool Chooser::may_vectorize_reduction(const NestSchedule& direct) const {
  if (!is_reduction_ || vectorizable_types()) return is_reduction_;
  if (general_) return false;  // what lanes found apart has no sum
  const auto packable = [](const Access& a) { return a.packable; };
  return fills_lanes() && sums_one_type() &&
         (!direct.has_vectors() || std::ranges::none_of(accesses_, packable));
}

std::vector<std::string> Chooser::lane_axes() const {
  std::vector<std::string> result;
  for (const Axis& axis : definition_.reduce_axes) {
    if (length_of(axis) < 4 || conditional_on(axis.name)) continue;
    bool contiguous = false, fits = true;
    for (const Access& a : accesses_) {
      if (!a.in_reduction) continue;
      std::optional<int64_t> c = coefficient(a.flat, axis.name);
      fits = fits && c && (*c == 0 || *c == 1) && !reads_memory(a.flat);
      contiguous = contiguous || (c && *c == 1);
    }
    if (fits && contiguous) result.push_back(axis.name);
  }
  return result;
}

int64_t Chooser::lane_length() const {
  const std::vector<Axis>& axes = definition_.reduce_axes;
  return length_of(*std::ranges::find(axes, schedule_.lane_axis, &Axis::name));
}

/// The columns of a tile whose lanes lie along a reduction axis: best where the output is
/// contiguous, so that a row of results is one register.
void Chooser::choose_columns() {
  int64_t best_score = 0;
  for (const Axis& axis : definition_.axes) {
    if (extent(axis.name) < 2 || conditional_on(axis.name)) continue;
    int64_t score = 1;
    bool affine = true, rows = true;
    for (const Access& a : accesses_) {
      std::optional<int64_t> c = coefficient(a.flat, axis.name);
      if (a.in_reduction) {
        affine = affine && c.has_value();
        score += c && *c == 0;
      } else {
        rows = rows && c && (*c == 0 || *c == 1);
      }
    }
    for (const Expr& flat : outputs_) rows = rows && coefficient(flat, axis.name) == 1;
    if (!affine) continue;
    score += rows ? 4 : 0;
    if (score >= best_score) {
      best_score = score;
      schedule_.vector_axis = axis.name;
      schedule_.totals_together = rows ? Totals::columns : Totals::cells;
    }
  }
}

/// Whether results along the tile are made of what is one value or lies contiguous: of the totals
/// of its rows, several at a time. They may be stored one by one.
bool Chooser::makes_registers_of_rows() const {
  const std::string& axis = schedule_.tile_axis;
  const auto asks = [&](const loop::DefinitionOutput& output) {
    bool found = false;
    loop::visit(output.value, [&](const Expr& e) {
      found = found || (e->kind == loop::ExprKind::if_then_else && mentions(e->args[0], axis));
    });
    return found;
  };
  if (axis.empty() || std::ranges::any_of(definition_.outputs, asks)) return false;
  return std::ranges::all_of(outputs_, [&](const Expr& f) { return coefficient(f, axis) > 0; }) &&
         std::ranges::all_of(accesses_, [&](const Access& a) {
           const std::optional<int64_t> c = coefficient(a.flat, axis);
           return a.in_reduction || (c && (*c == 0 || *c == 1) && !reads_memory(a.flat));
         });
}

std::vector<VectorSegment> Chooser::column_segments(int64_t columns) const {
  std::vector<VectorSegment> segments;
  int64_t total = extent(schedule_.vector_axis), at = 0;
  for (int64_t n = columns; n >= 1; n = n > vector_lanes() ? n / 2 : target_.fewer_lanes(n)) {
    int64_t count = (total - at) / n;
    if (count > 0) segments.push_back({at, count, n, 1});
    at += count * n;
    if (n == 1) break;
  }
  return segments;
}

/// Operands that rows of tiles share and that do not stay in the first cache.
double Chooser::far_operands() const {
  double count = 0;
  for (const Access& a : accesses_) {
    if (!a.in_reduction || !mentions(a.flat, schedule_.vector_axis)) continue;
    if (!schedule_.tile_axis.empty() && mentions(a.flat, schedule_.tile_axis)) continue;
    Dim size = TensorType{ElementType::f32, kernel_.find(a.buffer)->shape}.element_count();
    count += !size.is_constant() || size.constant() * 4 > target_.l1_bytes / 2;
  }
  return count;
}

/// Functions of the math library that every result takes.
double Chooser::math_calls() const {
  std::vector<Expr> calls;
  for (const loop::DefinitionOutput& output : definition_.outputs) {
    loop::visit(output.value, [&](const Expr& e) {
      const bool known = std::any_of(calls.begin(), calls.end(),
                                     [&](const Expr& other) { return loop::equal(e, other); });
      if (e->kind == loop::ExprKind::call && !known) calls.push_back(e);
    });
  }
  return static_cast<double>(calls.size());
}

/// Cycles from the registers of a tile's sums to its results.
double Chooser::totals_cycles(int64_t tile, int64_t columns) const {
  // What is made of a sum of products of bytes, of one or of a register of them.
  constexpr double kRequantised = 8;
  // More than in a loop over whole registers of results, for a register of however many.
  constexpr double kMath = 16;
  const double halvings = std::log2(schedule_.lanes);
  const auto of_register = [&](int64_t cells) {
    const auto n = static_cast<double>(cells);
    // Two shuffles and an operation make one register of two or halve one.
    double across =
        cells > 1 ? 2 * (n - 1 + std::max(halvings - std::log2(n), 0.0)) : 2 * halvings + 2;
    if (schedule_.sums_lanes) across = n + kRequantised;
    return across + kMath * math_calls_;
  };
  if (schedule_.totals_together == Totals::rows) {
    double each = 0;
    for (int64_t m = tile; m > 0; m -= floor_power(m)) each += of_register(floor_power(m));
    const bool scatters = std::ranges::any_of(
        outputs_, [&](const Expr& f) { return coefficient(f, schedule_.tile_axis) != 1; });
    return static_cast<double>(columns) * (each + (scatters ? static_cast<double>(tile) : 0));
  }
  const bool whole_rows = schedule_.totals_together == Totals::columns;
  return static_cast<double>(tile) *
         (whole_rows ? of_register(columns) : static_cast<double>(columns) * of_register(1));
}

/// Cycles of the whole; for a tile of 0 of the segments as chosen.
double Chooser::lane_cycles(int64_t tile, int64_t columns, int64_t chains) const {
  std::vector<VectorSegment> column_parts = schedule_.vector_segments;
  std::vector<TileSegment> row_parts = schedule_.tile_segments;
  if (tile > 0) {
    column_parts =
        schedule_.vector_axis.empty() ? std::vector<VectorSegment>{} : column_segments(columns);
    row_parts = tile_segments(tile);
  }
  if (column_parts.empty()) column_parts = {{0, 1, 1, 1}};
  if (row_parts.empty()) row_parts = {{Expr(0), Expr(1), 1, false}};
  int64_t length = lane_length();
  double outside = reduce_points() / static_cast<double>(length);
  double steps = static_cast<double>(length / schedule_.lanes) / static_cast<double>(chains);
  double tail = static_cast<double>(length % schedule_.lanes);
  double total = 0;
  for (const VectorSegment& c : column_parts) {
    for (size_t s = 0; s < row_parts.size(); ++s) {
      const TileSegment& r = row_parts[s];
      double n = static_cast<double>(c.vectors), m = static_cast<double>(r.size);
      double each = step_cycles(r.size, c.vectors, chains);
      total += tiles_in(row_parts, s) * static_cast<double>(c.count) *
               (outside * (steps * each + tail * m * n + 2) + totals_cycles(r.size, c.vectors) +
                m * n * static_cast<double>(chains) / 2);
    }
    // The first row of tiles brings the columns' operand from the second cache.
    double each = step_cycles(row_parts[0].size, c.vectors, chains);
    double lines = static_cast<double>(c.vectors * chains) * far_operands();
    total += static_cast<double>(c.count) * outside * steps * std::max(2 * lines - each, 0.0);
  }
  return total * outer_points();
}

void Chooser::choose_lane_sizes() {
  const int64_t length = lane_length();
  lanes_ = vector_lanes();
  math_calls_ = math_calls();
  schedule_.sums_lanes = multiplies_registers();
  // Taps of a window along the tile that stand innermost, and which totals go together.
  std::vector<std::pair<const Axis*, Totals>> forms{{nullptr, schedule_.totals_together}};
  if (makes_registers_of_rows()) forms.emplace_back(nullptr, Totals::rows);
  for (size_t i = 0, plain = forms.size(); i < plain && !schedule_.tile_axis.empty(); ++i) {
    for (const Axis& axis : definition_.reduce_axes) {
      const bool shares = axis.name != schedule_.lane_axis && may_share_window(axis);
      if (shares) forms.emplace_back(&axis, forms[i].second);
    }
  }
  const int64_t most_columns =
      schedule_.vector_axis.empty()
          ? 1
          : std::min<int64_t>(floor_power(extent(schedule_.vector_axis)), 16);
  struct Sizes {
    const Axis* taps = nullptr;
    Totals totals = Totals::cells;
    int64_t tile = 1, columns = 1, chains = 1, lanes = 1;
  };
  double least = 2e30;
  // Fewer lanes than there are leave less of the axis to scalars.
  const int64_t most_lanes = floor_power(std::min<int64_t>(lanes_, length));
  Sizes best{.lanes = most_lanes};  // of a tile of one where none fits
  for (int64_t lanes = most_lanes; lanes >= std::min<int64_t>(most_lanes, 4); lanes /= 2) {
    if (lanes < most_lanes && length % lanes == length % most_lanes) continue;
    schedule_.lanes = static_cast<int32_t>(lanes);
    for (const auto& [taps, totals] : forms) {
      share_window(taps);
      schedule_.totals_together = totals;
      int64_t most_rows = totals == Totals::rows ? std::max<int64_t>(lanes_, 8) : 8;
      if (schedule_.tile_axis.empty()) most_rows = 1;
      if (const int64_t e = extent(schedule_.tile_axis); e > 0) most_rows = std::min(most_rows, e);
      for (int64_t chains = 1; chains <= 8 && chains * lanes <= length; chains *= 2) {
        for (int64_t columns = 1; columns <= most_columns; columns *= 2) {
          for (int64_t tile = 1; tile <= most_rows; ++tile) {
            const double cycles = lane_cycles(tile, columns, chains);
            if (cycles >= least * 0.999) continue;
            least = cycles;
            best = {taps, totals, tile, columns, chains, lanes};
          }
        }
      }
    }
    if (length % lanes == 0) break;
  }
  schedule_.lanes = static_cast<int32_t>(best.lanes);
  schedule_.has_tail = length % best.lanes != 0 || extent(schedule_.lane_axis) == 0;
  schedule_.chains = best.chains;
  schedule_.totals_together = best.totals;
  if (!schedule_.vector_axis.empty()) schedule_.vector_segments = column_segments(best.columns);
  if (!schedule_.tile_axis.empty()) schedule_.tile_segments = tile_segments(best.tile);
  share_window(best.taps);
  std::vector<std::string> order;
  for (const Axis& axis : reduce_axes()) {
    const bool taps = best.taps != nullptr && axis.name == best.taps->name;
    if (axis.name != schedule_.lane_axis && !taps) order.push_back(axis.name);
  }
  order.push_back(schedule_.lane_axis);
  if (best.taps != nullptr) {
    order.push_back(best.taps->name);
    schedule_.unrolled = {best.taps->name};
  }
  schedule_.reduce_order = std::move(order);
}

// ---- transposition ------------------------------------------------------------------------------

/// An axis along which everything lies contiguous that does not along the vector axis; empty when
/// there is none or nothing needs it.
std::string Chooser::contiguous_partner(const std::string& vector_axis) const {
  for (const Axis& axis : definition_.axes) {
    if (axis.name == vector_axis || extent(axis.name) < 4 || conditional_on(axis.name)) continue;
    bool fits = true, needed = false;
    for (const Access& a : accesses_) {
      std::optional<int64_t> c = coefficient(a.flat, vector_axis);
      std::optional<int64_t> along = coefficient(a.flat, axis.name);
      if (!c || !along || reads_memory(a.flat)) return "";
      if (*c == 0 || *c == 1) continue;
      fits = fits && *along == 1;
      needed = true;
    }
    if (fits && needed) return axis.name;
  }
  return "";
}

bool Chooser::choose_transposition() {
  if (is_reduction_ || !vectorizable_types() || !schedule_.vector_axis.empty()) return false;
  for (const Axis& axis : definition_.axes) {
    if (extent(axis.name) < 4 || conditional_on(axis.name)) continue;
    bool written = std::all_of(outputs_.begin(), outputs_.end(),
                               [&](const Expr& flat) { return coefficient(flat, axis.name) == 1; });
    std::string partner = written ? contiguous_partner(axis.name) : "";
    if (partner.empty()) continue;
    schedule_.vector_axis = axis.name;
    schedule_.tile_axis = schedule_.transposed_axis = partner;
    int64_t fits = std::min(extent(axis.name), extent(partner));
    int64_t size = floor_power(std::min<int64_t>(fits, vector_lanes()));
    lanes_ = static_cast<int32_t>(size);
    schedule_.vector_segments = vector_segments(1);
    int64_t full = extent(partner) / size, rest = extent(partner) % size;
    schedule_.tile_segments = {{Expr(0), Expr(full), size, false}};
    if (rest > 0) schedule_.tile_segments.push_back({Expr(full * size), Expr(rest), 1, false});
    return true;
  }
  return false;
}

/// Two or three results side by side whose operands lie apart, such as shuffled channels: vectors
/// run along the axis around them.
bool Chooser::choose_interleaving() {
  constexpr int64_t kMost = 3;  // each more takes a shuffle of every register
  if (!definition_.accumulators.empty() || outputs_.size() != 1) return false;
  if (!schedule_.vector_axis.empty()) return false;
  const Expr& value = definition_.outputs[0].value;
  const bool narrows = before_narrowing(value).type() != value.type();
  const bool moves =
      moves_elements() && loop::is_integer(scalar_) && byte_size(loop::element_of(scalar_)) <= 4;
  const bool converts =
      value->kind == loop::ExprKind::cast && value->args[0]->kind == loop::ExprKind::access;
  if (!vectorizable_types() && !moves && !(fills_lanes() && (narrows || converts))) return false;
  for (const Axis& narrow : definition_.axes) {
    const int64_t count = extent(narrow.name);
    if (count < 2 || count > kMost || coefficient(outputs_[0], narrow.name) != 1) continue;
    for (const Axis& axis : definition_.axes) {
      if (extent(axis.name) < 4 || conditional_on(axis.name)) continue;
      if (coefficient(outputs_[0], axis.name) != count) continue;
      const bool fits = std::all_of(accesses_.begin(), accesses_.end(), [&](const Access& a) {
        const std::optional<int64_t> c = coefficient(a.flat, axis.name);
        return c && (*c == 0 || *c == 1) && !reads_memory(a.flat);
      });
      if (!fits) continue;
      schedule_.vector_axis = axis.name;
      schedule_.jam_axis = narrow.name;
      schedule_.jam = count;
      schedule_.interleaved = true;
      lanes_ = vector_lanes();
      schedule_.vector_segments = vector_segments(1);
      return true;
    }
  }
  return false;
}

/// Every operand of the reduction lies along the vectors, or is rearranged so.
bool Chooser::reads_in_vectors() const {
  if (schedule_.vector_axis.empty()) return false;
  return std::all_of(accesses_.begin(), accesses_.end(), [&](const Access& a) {
    std::optional<int64_t> c = coefficient(a.flat, schedule_.vector_axis);
    return !a.in_reduction || (c && (*c == 0 || *c == 1)) || schedule_.packed.count(a.buffer);
  });
}

/// An operand rearranged at run time, block by block, needs room for no more than a panel or a
/// small part of it.
bool Chooser::fits_panel(int64_t vectors) const {
  constexpr int64_t kPart = 4;
  if (mode_ != VectorMode::repack) return true;
  const double row = reduce_points() * static_cast<double>(byte_size(loop::element_of(scalar_)));
  const double panel = row * static_cast<double>(vectors * lanes_);
  const double part = row * static_cast<double>(extent(schedule_.vector_axis)) / kPart;
  return panel <= std::max(static_cast<double>(kPackedPanelBytes), part);
}

/// Vectors whose elements an epilogue reads and stores apart: they are turned in a buffer, or go
/// one by one, and where their lines collide each waits for the second cache.
double Chooser::scattering_cycles(const NestSchedule& schedule) const {
  constexpr double kEach = 1;
  if (!schedule.has_vectors() || !schedule.transposed_axis.empty()) return 0;
  const int64_t width = schedule.vector_segments[0].width();
  const auto each = [&](const Expr& flat) -> double {
    const std::optional<int64_t> c = coefficient(flat, schedule.vector_axis);
    if (c && (*c == 0 || *c == 1)) return 0;
    const int64_t pitch = c.value_or(1) * byte_size(loop::element_of(scalar_));
    return holds_lines(width, pitch, target_) ? kEach : kEach * kCollidingStore;
  };
  double sum = 0;
  for (const Expr& flat : outputs_) sum += each(flat);
  for (const Access& a : accesses_) sum += a.in_reduction ? 0 : each(a.flat);
  for (const Axis& axis : definition_.axes) {
    sum *= static_cast<double>(length_of(axis));
  }
  return sum;
}

// ---- the choice ---------------------------------------------------------------------------------

namespace {

Chooser::Plan best_plan(Chooser& chooser, bool may_repack) {
  Chooser::Plan best = chooser.plan(VectorMode::direct);
  // Products of bytes have no instruction but with lanes along their sum.
  const bool in_lanes = chooser.multiplies_registers();
  if (in_lanes) best.cycles = std::numeric_limits<double>::infinity();
  if (!in_lanes && !chooser.may_vectorize_reduction(best.schedule)) return best;
  const bool packs = !best.schedule.packed.empty();
  if (!in_lanes && packs && !chooser.leaves_lanes_empty(best.schedule)) return best;
  const auto consider = [&](Chooser::Plan plan) {
    if (plan.possible && plan.cycles < best.cycles) best = std::move(plan);
  };
  for (const std::string& axis : chooser.lane_axes()) {
    consider(chooser.plan(VectorMode::lanes, axis));
  }
  if (may_repack && !in_lanes && best.schedule.packed.empty()) {
    consider(chooser.plan(VectorMode::repack));
  }
  return best;
}

}  // namespace

NestSchedule choose_schedule(const loop::Definition& definition, const loop::Kernel& kernel,
                             const TargetInfo& target,
                             const std::function<bool(const std::string&)>& is_constant,
                             bool may_repack, const TileLimits& limits) {
  Chooser chooser(definition, kernel, target, is_constant, limits);
  return best_plan(chooser, may_repack).schedule;
}

double schedule_cycles(const loop::Definition& definition, const loop::Kernel& kernel,
                       const TargetInfo& target,
                       const std::function<bool(const std::string&)>& is_constant,
                       bool may_repack) {
  Chooser chooser(definition, kernel, target, is_constant);
  const Chooser::Plan plan = best_plan(chooser, may_repack);
  return plan.cycles + chooser.scattering_cycles(plan.schedule);
}

double rearranging_cycles(const loop::Definition& definition, const loop::Kernel& kernel,
                          const TargetInfo& target,
                          const std::function<bool(const std::string&)>& is_constant,
                          const NestSchedule& schedule) {
  return Chooser(definition, kernel, target, is_constant).packing_cycles(schedule);
}

}  // namespace backcast
