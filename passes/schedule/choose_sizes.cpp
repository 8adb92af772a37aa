// The analytic model: for every register tile that fits, the cycles per step of the reduction are
// the largest of arithmetic, loads and the latency of the accumulators; the cheapest tiling of the
// whole iteration space, remainders included, wins.
#include <algorithm>
#include <functional>
#include <utility>

#include "ir/loop/visit.h"
#include "passes/lower/definition_cost.h"
#include "passes/schedule/affine.h"
#include "passes/schedule/chooser.h"

namespace backcast {

using loop::Axis;
using loop::Expr;
using loop::Scalar;

namespace {

// More cycles than any step takes: of a tile that does not fit the registers.
constexpr double kTooMany = 1e30;
// Products wait in registers until an instruction stands between each and its addition.
constexpr int64_t kWaitingProducts = 4;
// Registers that compilers for x86 convert half floats to, out of memory, before they are
// multiplied.
constexpr int64_t kConvertedAhead = 2;
// Multiply-accumulates per iteration of an inner loop: its counters take the units that vectors
// need, and longer bodies wait less between requests to memory.
constexpr int64_t kBody = 64;
// The same where every one of them waits for a line of the second cache.
constexpr int64_t kStreamBody = 128;

// Sums in general registers, half of which vmladava can write, beside addresses and a counter.
constexpr int64_t kScalarSums = 4;

// Registers that compilers ask for beside sums where each broadcast serves one product: the sum
// goes on in the broadcast's register, and by the end of an unrolled body all have moved.
constexpr int64_t kRotating = 5;

}  // namespace

/// Registers of the kind that holds this scalar type.
int Chooser::registers() const {
  if (lanes_ > 1) return target_.vector_registers;
  if (loop::is_float(scalar_) && target_.vector_bits > 0) return target_.vector_registers;
  if (loop::is_float(scalar_) && target_.float_registers > 0) return target_.float_registers;
  if (adds_products()) return target_.integer_registers - 3;  // two addresses and a counter
  return std::max(target_.integer_registers - 6, 4);  // addresses and counters take the others
}

/// Scalars that take products of integers in, an instruction each (mla, smlad).
bool Chooser::adds_products() const { return target_.vector_bits == 0 && added_products_ > 0; }

/// Scalars in order whose fused multiply-add is slower than a multiplication and an addition.
bool Chooser::multiplies_separately() const {
  return target_.vector_bits == 0 && target_.float_registers > 0 && loop::is_float(scalar_) &&
         !target_.uses_fma();
}

/// Vector operations in order, that take a scalar factor from a general register.
bool Chooser::takes_scalars() const {
  return lanes_ > 1 && target_.scalar_factors && mode_ != VectorMode::lanes;
}

bool Chooser::multiplies_registers() const {
  bool found = false;
  for (const loop::Accumulator& acc : definition_.accumulators) {
    loop::visit(acc.value, [&](const Expr& e) {
      found = found || (e->kind == loop::ExprKind::binary && e->op == loop::Op::dot4_signed);
    });
  }
  return found && target_.summed_byte_products;
}

bool Chooser::reads_halves() const {
  return std::ranges::any_of(accesses_, [&](const Access& a) {
    return a.in_reduction && loop::is_half(kernel_.find(a.buffer)->element);
  });
}

/// Operations of a step that make factors of 4-bit integers, once for all rows of a tile. (Those of
/// bytes go on beside products: tiles chosen for them were slower on AVX-512, having one column.)
int64_t Chooser::conversions() const {
  if (schedule_.tile_axis.empty() || !limits_.even) return 0;
  int64_t operations = 0;
  const std::function<bool(const Expr&)> converts = [&](const Expr& e) {
    if (e->kind == loop::ExprKind::access) return false;
    if (e->kind == loop::ExprKind::cast && loop::is_float(e.type().scalar) &&
        loop::is_integer(e->args[0].type().scalar) && reads_memory(e->args[0])) {
      operations += 3;  // taken out of its byte, widened, converted
      return true;
    }
    bool found = false;
    for (const Expr& arg : e->args) found = converts(arg) || found;
    if (found && !mentions(e, schedule_.tile_axis)) ++operations;
    return found;
  };
  for (const loop::Accumulator& acc : definition_.accumulators) converts(acc.value);
  return operations;
}

/// Whether taps along the tile, in a loop short enough for compilers to unroll, read what others
/// read: compilers keep the equal loads.
bool Chooser::overlaps_windows() const {
  return std::any_of(definition_.reduce_axes.begin(), definition_.reduce_axes.end(),
                     [&](const Axis& taps) { return may_share_window(taps); });
}

/// Whether a tile's sums and what it reads fit the registers.
bool Chooser::fits_registers(int64_t tile, int64_t vectors) const {
  return step_cycles(tile, vectors) < kTooMany;
}

/// Cycles of one reduction step of a tile (of `chains` steps in chains of their own); a huge figure
/// when it does not fit the registers.
double Chooser::step_cycles(int64_t tile, int64_t vectors, int64_t chains) const {
  const int64_t sums = std::max<int64_t>(static_cast<int64_t>(definition_.accumulators.size()), 1);
  int64_t accumulators = tile * schedule_.jam * vectors * chains * sums;
  int64_t loads = 0, joined_loads = 0, scalar_loads = 0, held = 0, pairs = 0;
  const bool joins = schedule_.joined_steps > 1;
  bool one_waits = false;
  int64_t taken_apart = 0;
  for (const Access& a : accesses_) {
    if (!a.in_reduction) continue;
    // The other bytes of a word that has been loaded.
    const bool again =
        (adds_products() || products_in_turn_ > 0) &&
        std::any_of(accesses_.data(), &a, [&](const Access& b) { return reads_again(a, b); });
    if (again && adds_products()) continue;
    bool with_tile = !schedule_.tile_axis.empty() && mentions(a.flat, schedule_.tile_axis);
    bool with_vector = mentions(a.flat, schedule_.vector_axis);
    int64_t jam = 1;
    for (const std::string& axis : {schedule_.jam_axis, schedule_.outer_jam_axis}) {
      if (!axis.empty() && mentions(a.flat, axis)) jam *= extent(axis);
    }
    int64_t rows = with_tile ? (tile - 1) * window_step_ + window_taps_ : window_taps_;
    const int64_t words = rows * (with_vector ? vectors : 1) * jam;
    if (again) {
      taken_apart += words;
      continue;
    }
    if (joins && takes_lanes(a)) {
      joined_loads += words;
      held += words;
      continue;
    }
    const bool unpacked = is_unpacked(a);
    loads += words * (unpacked ? a.values() : 1);
    pairs += unpacked ? 0 : words * a.pairs();
    if (unpacked && &a != unpacked_[0]) continue;
    // A scalar that one row alone uses needs a register for an instruction only.
    // What one element alone of the jammed axes reads goes straight into its sum.
    const bool alone = schedule_.jam > 1 && jam == schedule_.jam && tile == 1;
    const bool at_once = multiplies_separately() || adds_products();
    bool kept = with_vector && !with_tile && !alone && (tile > 1 || !at_once);
    // One row beside a math function or in no tile: its columns are read once and need no
    // registers.
    const bool one_row = schedule_.tile_axis.empty() || extent(schedule_.tile_axis) == 1;
    if (one_row && (math_calls_ > 0 || limits_.rows == 1)) kept = false;
    if (takes_scalars() && !with_vector) {
      scalar_loads += words;
      continue;
    }
    // Beside scalar factors, a vector that rows share is needed once, for all of them.
    if ((takes_scalars() || joins) && kept && window_taps_ == 1) {
      held += 1;
      continue;
    }
    const int64_t waiting = a.values() > 2 ? vectors : waiting_loads();
    // Products one after another want one factor at a time.
    if (products_in_turn_ > 0 && !kept && std::exchange(one_waits, true)) continue;
    held += taken_at_once(a, with_vector, kept) * (kept ? vectors * jam * window_taps_ : waiting);
    if (with_vector && with_tile && window_taps_ == 1 && overlaps_windows()) held += tile * vectors;
  }
  bool fused = adds_products() || target_.fuses_products();
  int64_t products = multiplies_separately() ? kWaitingProducts : 1;
  // A row alone makes pairs of bytes right before it adds their product.
  if (fused && !(adds_products() && tile == 1)) products = 0;
  if (reads_halves() && !target_.loads_apart()) products = std::max(products, kConvertedAhead);
  if (schedule_.sums_lanes ? accumulators > kScalarSums
                           : accumulators + held + products > registers()) {
    return kTooMany;
  }
  double arithmetic =
      static_cast<double>(accumulators * (fused ? 1 : 2) + conversions_ * vectors * chains);
  if (adds_products()) {
    arithmetic = static_cast<double>(accumulators * added_products_) +
                 static_cast<double>(pairs) / static_cast<double>(window_taps_);
  }
  if (products_in_turn_ > 0) {
    arithmetic = static_cast<double>(accumulators * products_in_turn_ + taken_apart * shifts_);
  }
  if (target_.vector_bits == 0) {
    // In order, one instruction at a time; three more for the loop.
    double memory = (multiplies_separately() ? 2.0 : 1.5) * static_cast<double>(loads);
    return arithmetic + (memory + 3.0) / static_cast<double>(window_taps_);
  }
  if (lanes_ > 1 && target_.scalar_factors) {
    // In order: what moves vectors goes on beside arithmetic, what moves scalars does not.
    constexpr double kScalar = 0.5, kBeside = 0.25, kLoop = 0.25;
    const auto taps = static_cast<double>(window_taps_);
    const double scalars = static_cast<double>(scalar_loads * chains) / taps;
    const double vectors_moved = static_cast<double>((loads - scalar_loads) * chains) / taps;
    return std::max(arithmetic, vectors_moved) + kScalar * scalars + kBeside * vectors_moved +
           kLoop;
  }
  const double moved =
      static_cast<double>(loads) + static_cast<double>(joined_loads) / schedule_.joined_steps;
  double memory = moved * static_cast<double>(chains) / static_cast<double>(2 * window_taps_);
  // Small integers that are not lanes become words, an instruction each.
  if (target_.lane_factors && scalar_ == Scalar::i32 && !joins) arithmetic += 2 * memory;
  double units = arithmetic / target_.fma_units;
  // The loop and what does not overlap perfectly: felt by small tiles.
  constexpr double kSlack = 0.6, kIssue = 0.25;
  const double issue = target_.loads_apart() ? kIssue * 2 * memory : 0;
  return std::max({units, memory, static_cast<double>(target_.fma_latency)}) + kSlack + issue;
}

/// Whole registers along an axis, or the one that there is: what is left has a nest of its own.
int64_t Chooser::vectors_of(const std::string& axis) const {
  return std::max<int64_t>(extent(axis) / lanes_, 1);
}

std::vector<VectorSegment> Chooser::vector_segments(int64_t vectors) const {
  std::vector<VectorSegment> segments;
  int64_t total = extent(schedule_.vector_axis), at = 0;
  const auto add = [&](int64_t count, int64_t n, int32_t lanes) {
    if (count == 0 || n == 0) return;
    segments.push_back({at, count, n, lanes});
    at += count * n * lanes;
  };
  add(total / (vectors * lanes_), vectors, lanes_);
  if (at < total && may_spare_lanes()) {
    add(1, (total - at + lanes_ - 1) / lanes_, lanes_);
    segments.back().spare = static_cast<int32_t>(at - total);
    return segments;
  }
  add(1, (total - at) / lanes_, lanes_);
  for (int32_t lanes = lanes_; lanes > 1;) {
    lanes = target_.fewer_lanes(lanes);
    add((total - at) / lanes, 1, lanes);
  }
  return segments;
}

/// Whether every guard on the tile axis holds at element u for every window element.
bool Chooser::interior(int64_t u) const {
  for (const Expr& part : conditions_) {
    if (!mentions(part, schedule_.tile_axis)) continue;
    // Affine with positive coefficients: the extremes of the window decide.
    for (bool last : {false, true}) {
      std::map<std::string, int64_t> values{{schedule_.tile_axis, u}};
      for (const Axis& r : definition_.reduce_axes) values[r.name] = last ? extent(r.name) - 1 : 0;
      int64_t margin = evaluate(part->args[0] - part->args[1], values).value();
      if (part->op == loop::Op::ge ? margin < 0 : margin >= 0) return false;
    }
  }
  return true;
}

/// Of so many positions of the tile's axis those where no tap lies in the padding.
std::pair<int64_t, int64_t> Chooser::interior_range(int64_t total) const {
  const auto [known, fresh] = interiors_.try_emplace(schedule_.tile_axis, 0, total);
  auto& [low, high] = known->second;
  while (fresh && low < total && !interior(low)) ++low;
  while (fresh && high > low && !interior(high - 1)) --high;
  return known->second;
}

std::vector<TileSegment> Chooser::tile_segments(int64_t size) const {
  if (schedule_.tile_axis.empty()) return {};
  int64_t total = extent(schedule_.tile_axis);
  if (total == 0) return symbolic_tiles(size);
  const auto [low, high] = interior_range(total);
  std::vector<TileSegment> segments;
  int64_t at = 0;
  const auto border = [&](int64_t n) {
    segments.push_back({Expr(at), Expr(1), n, true});
    at += n;
  };
  while (at < low) border(std::min(size, total - at));
  if (int64_t full = std::max<int64_t>(high - at, 0) / size; full > 0) {
    segments.push_back({Expr(at), Expr(full), size, false});
    at += full * size;
  }
  if (high == total && at < total) {
    segments.push_back({Expr(at), Expr(1), total - at, false});
    at = total;
  }
  while (at < total) border(std::min(size, total - at));
  return segments;
}

/// Cycles per step that a tile waits beside those of step_cycles(). Sums beyond what latency asks
/// for cost it up to 24 cycles, however long they are: the core has no registers left to rename to,
/// as if some sums fell behind and ended alone. Without such sums every late operand delays all.
/// Of equal ones the tile with fewer vectors is better: gcc keeps a bias for each in a register,
/// and loads operands again for want of it. Measured on Zen 3. A window's taps, in an order of
/// their own, lose less; with stride 1 nothing, and neither does a tile whose epilogue calls math.
double Chooser::waiting_cycles(int64_t tile, int64_t vectors) const {
  constexpr double kEach = 10, kMost = 24, kMostOfWindow = 8, kLate = 0.1;
  constexpr double kHeld = 0.01;
  const bool fused = target_.fuses_products();
  const bool in_window = window_taps_ > 1;
  if (lanes_ == 1 || takes_scalars() || !fused || target_.vector_registers > 16) return 0;
  if ((in_window && window_step_ == 1) || schedule_.rolled_epilogue) return 0;
  const int64_t sums = std::max<int64_t>(static_cast<int64_t>(definition_.accumulators.size()), 1);
  const int64_t registers = tile * vectors * schedule_.jam * sums;
  const int64_t beyond = registers - fewest_sums();
  if (beyond <= 0) return kLate + kHeld * static_cast<double>(vectors);
  const double most = in_window ? kMostOfWindow : kMost;
  return std::min(kEach * static_cast<double>(beyond), most) / reduce_points();
}

/// Cycles per step that a panel of so many vectors takes out of the second cache, or from behind
/// it. (Where the number of tiles is known, these are as high as registers allow, and hide it.)
double Chooser::fetching_cycles(int64_t vectors) const {
  constexpr double kNear = 48, kFar = 16;  // bytes per cycle
  const double row = static_cast<double>(vectors * lanes_ * byte_size(loop::element_of(scalar_)));
  const double panel = row * reduce_points();
  if (lanes_ == 1 || panel * 2 <= static_cast<double>(target_.l1_bytes)) return 0;
  if (target_.l2_bytes == 0) return 0;
  return row / (panel * 2 > static_cast<double>(target_.l2_bytes) ? kFar : kNear);
}

double Chooser::total_cycles(int64_t size, int64_t vectors) const {
  double total = 0;
  std::vector<VectorSegment> columns = schedule_.vector_axis.empty()
                                           ? std::vector<VectorSegment>{{0, 1, 1, 1}}
                                           : vector_segments(vectors);
  std::vector<TileSegment> rows = tile_segments(size);
  if (rows.empty()) rows = {{Expr(0), Expr(1), 1, false}};
  int64_t count = 0;
  const bool is_symbolic = !loop::as_constant(rows[0].count, count);
  for (const VectorSegment& c : columns) {
    for (size_t s = 0; s < rows.size(); ++s) {
      const double step =
          step_cycles(rows[s].size, c.vectors) + waiting_cycles(rows[s].size, c.vectors);
      total += tiles_in(rows, s) * static_cast<double>(c.count) *
               std::max(step, is_symbolic ? fetching_cycles(c.vectors) : 0);
    }
  }
  return total;
}

/// Vectors of a constant, each read once per position, that the second cache holds and the first
/// does not.
bool Chooser::streams_constant() const {
  if (lanes_ == 1 || target_.l2_bytes == 0) return false;
  return std::any_of(accesses_.begin(), accesses_.end(), [&](const Access& a) {
    if (!a.packable || !a.constant || !mentions(a.flat, schedule_.vector_axis)) return false;
    const std::optional<int64_t> bytes = static_bytes(*kernel_.find(a.buffer));
    return bytes && *bytes > target_.l1_bytes && *bytes <= target_.l2_bytes;
  });
}

void Chooser::choose_sizes() {
  if (!is_reduction_) return choose_map();
  schedule_.rolled_epilogue = needs_rolled_epilogue();
  conversions_ = conversions();
  schedule_.joined_steps = steps_to_join();
  double best = 2e30;
  int64_t best_tile = 1, best_vectors = 1;
  int64_t max_tile = schedule_.tile_axis.empty() ? 1 : limits_.rows;
  int64_t max_vectors = schedule_.vector_axis.empty() ? 1 : multiplies_separately() ? 16 : 8;
  if (int64_t e = extent(schedule_.tile_axis); e > 0) max_tile = std::min(max_tile, e);
  if (!schedule_.vector_axis.empty()) {
    const int64_t columns = extent(schedule_.vector_axis);
    const int64_t fill = (columns + (may_spare_lanes() ? lanes_ - 1 : 0)) / lanes_;
    max_vectors = std::clamp<int64_t>(fill, 1, std::min(max_vectors, limits_.vectors));
  }
  int64_t steps = 1;
  for (const std::string& axis : schedule_.unrolled) steps *= extent(axis);
  const int64_t work = step_work(), body_of_one = steps * work;
  const int64_t budget = work > 1 ? kBody : target_.unroll_budget;
  for (int64_t tile = 1; tile <= max_tile; ++tile) {
    for (int64_t vectors = std::max<int64_t>(fewest_vectors(), 1); vectors <= max_vectors;
         ++vectors) {
      if (tile * vectors > 1 && tile * vectors * body_of_one > budget) continue;
      if (vectors > 1 && !fits_panel(vectors)) continue;
      if (limits_.even && max_vectors > 1 && vectors % 2 != 0) continue;
      double cycles = total_cycles(tile, vectors);
      if (cycles < best * 0.999) {
        best = cycles;
        best_tile = tile;
        best_vectors = vectors;
      }
    }
  }
  if (!schedule_.vector_axis.empty()) schedule_.vector_segments = vector_segments(best_vectors);
  if (!schedule_.tile_axis.empty()) schedule_.tile_segments = tile_segments(best_tile);
  int64_t body = best_tile * best_vectors * body_of_one;
  const bool streams = best_tile == 1 && streams_constant();
  // Words hold several steps of their sum.
  const bool words = adds_products() && added_products_ > 1;
  if (words) body *= added_products_ * static_cast<int64_t>(definition_.accumulators.size());
  if (steps == 1) {
    schedule_.reduce_unroll = streams ? std::clamp<int64_t>(kStreamBody / body, 1, 16)
                                      : std::clamp<int64_t>(kBody / body, 1, words ? 8 : 4);
  }
  const bool joins = schedule_.joined_steps > 1;
  if (joins) schedule_.reduce_unroll = schedule_.joined_steps;
  schedule_.by_columns = takes_scalars() || joins;
  const bool rotates = lanes_ > 1 && best_vectors == 1 && !target_.loads_apart();
  const bool kept = 2 * read_again(best_tile) * schedule_.jam > registers();
  if (rotates && (kept || best_tile * schedule_.jam + kRotating > registers())) {
    schedule_.reduce_unroll = 1;
  }
  schedule_.chains = free_chains(best_tile * schedule_.jam * best_vectors);
  const int64_t held = best_tile * best_vectors + best_vectors + best_tile;
  schedule_.border_loops = lanes_ > 1 && window_taps_ == 1 && held > registers();
}

/// Of rows along the tile's axis those that read what others read a step of the innermost reduction
/// axis before: compilers keep it where both steps are in one body.
int64_t Chooser::read_again(int64_t tile) const {
  int64_t most = 0;
  for (const Access& a : accesses_) {
    if (!a.in_reduction || schedule_.tile_axis.empty()) continue;
    const int64_t row = coefficient(a.flat, schedule_.tile_axis).value_or(0);
    const int64_t step = coefficient(a.flat, reduce_axes().back().name).value_or(0);
    if (row > 0 && step > 0 && step % row == 0) most = std::max(most, tile - step / row);
  }
  return most;
}

/// A sum that few registers take waits for its own additions: the steps of an iteration take turns
/// with more registers.
int64_t Chooser::free_chains(int64_t registers) const {
  if (lanes_ == 1 || reduce_points() < 4.0 * target_.fma_latency) return 1;
  for (const loop::Accumulator& acc : definition_.accumulators) {
    if (acc.combine != loop::Combine::sum) return 1;
  }
  const int64_t last = extent(reduce_axes().back().name);
  int64_t step = schedule_.reduce_unroll, chains = 1;
  while (step > 1 && (last % step != 0 || last <= step)) --step;
  while (2 * chains * registers <= target_.fma_latency && 2 * chains <= step) chains *= 2;
  return chains;
}

// ---- comparing ways to fill vectors -------------------------------------------------------------

/// Positions of the axes that neither the tile nor vectors run along.
double Chooser::outer_points() const {
  double points = 1;
  for (const Axis& axis : definition_.axes) {
    if (is_tiled(axis.name)) continue;
    points *= static_cast<double>(length_of(axis));
  }
  return points;
}

double Chooser::reduce_points() const {
  double points = 1;
  for (const Axis& axis : definition_.reduce_axes) points *= static_cast<double>(length_of(axis));
  return points;
}

double Chooser::direct_cycles() const {
  std::vector<VectorSegment> columns = schedule_.vector_segments;
  std::vector<TileSegment> rows = schedule_.tile_segments;
  if (columns.empty()) columns = {{0, 1, 1, 1}};
  if (rows.empty()) rows = {{Expr(0), Expr(1), 1, false}};
  double total = 0;
  for (const VectorSegment& c : columns) {
    for (size_t s = 0; s < rows.size(); ++s) {
      const TileSegment& r = rows[s];
      double ends = 2.0 * static_cast<double>(r.size * c.vectors);
      total += tiles_in(rows, s) * static_cast<double>(c.count) *
               (step_cycles(r.size, c.vectors) * reduce_points() + ends);
    }
  }
  return total * outer_points();
}

/// Moving an element costs half a cycle when whole registers are turned, less when they are copied,
/// more one by one.
double Chooser::packing_cycles(const NestSchedule& schedule) const {
  double total = 0;
  for (const auto& [name, packing] : schedule.packed) {
    if (!packing.at_run_time) continue;
    double each = 1.5;
    for (const Access& a : accesses_) {
      if (a.buffer != name) continue;
      if (contiguous_run(a) * 2 >= lanes_) each = 0.5;
      if (coefficient(a.flat, schedule.vector_axis) == 1) each = 0.25;
    }
    total += 50 + each * static_cast<double>(packed_count(schedule, name));
  }
  return total;
}

}  // namespace backcast
