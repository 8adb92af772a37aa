// Expansion of a definition under a NestSchedule: the loops over its axes and the register tile.
// The reduction inside is in expand_reduction.cpp, its blocks in expand_blocks.cpp, what follows it
// in expand_epilogue.cpp.
#include "passes/schedule/nest.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/loop/combine.h"
#include "ir/loop/visit.h"
#include "passes/schedule/affine.h"
#include "passes/schedule/expansion.h"
#include "passes/schedule/nibbles.h"
#include "passes/schedule/panel.h"

namespace backcast {

using loop::Accumulator;
using loop::Axis;
using loop::Definition;
using loop::Expr;
using loop::Kernel;
using loop::Stmt;

int64_t Packing::outer_count() const {
  int64_t n = 1;
  for (int64_t e : outer_extents) n *= e;
  return n;
}

int64_t Packing::reduce_count() const {
  int64_t n = 1;
  for (int64_t e : reduce_extents) n *= e;
  return n;
}

int64_t Packing::rows_before(const std::vector<VectorSegment>& segments, int64_t first) const {
  int64_t elements = 0;
  for (const VectorSegment& segment : segments) {
    if (segment.begin == first) break;
    elements += segment.count * row(segment);
  }
  return elements;
}

int64_t NestSchedule::largest_tile() const {
  int64_t rows = 1;
  for (const TileSegment& s : tile_segments) rows = std::max(rows, s.size);
  return rows;
}

bool NestSchedule::is_block_axis(const std::string& axis) const {
  return std::find(block_axes.begin(), block_axes.end(), axis) != block_axes.end();
}

int64_t NestSchedule::columns() const {
  int64_t columns = 0;
  for (const VectorSegment& s : vector_segments) columns += s.count * s.width();
  return columns;
}

std::string NestSchedule::to_string() const {
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  if (!vector_segments.empty()) {
    const VectorSegment& s = vector_segments.front();
    add(fmt::format("{} {} {}x{}", s.lanes > 1 ? "vectorize" : "tile", vector_axis, s.lanes,
                    s.vectors));
  }
  int64_t tile = 0;
  for (const TileSegment& s : tile_segments) tile = std::max(tile, s.size);
  if (tile > 0) add(fmt::format("tile {} {}", tile_axis, tile));
  if (!outer_jam_axis.empty()) add("jam " + outer_jam_axis);
  if (!jam_axis.empty()) add("jam " + jam_axis);
  for (const std::string& axis : block_axes) add(fmt::format("{} of {} blocks", axis, blocks));
  for (const std::string& axis : unrolled) add("unroll " + axis);
  if (!lane_axis.empty()) {
    add(fmt::format("{} {} {}x{}", sums_lanes ? "sum lanes" : "lanes", lane_axis, lanes, chains));
  } else if (chains > 1) {
    add(fmt::format("chains {}", chains));
  }
  if (joined_steps > 1) add(fmt::format("join {} factors", joined_steps));
  if (!taken.axes.empty()) add("skip zeros of " + taken.factor);
  if (!split_axis.empty()) add("split " + split_axis);
  if (!transposed_axis.empty()) add("transpose " + transposed_axis);
  if (interleaved) add("interleave");
  if (rolled_epilogue) add("rolled epilogue");
  for (const Fetch& fetch : fetches) add("fetch " + fetch.buffer);
  if (!unpacked.empty()) add("unpack");
  if (addend) add("begin with an addend");
  if (factor) add("factor sums");
  for (const auto& [name, packing] : packed) {
    add(fmt::format("{} {}", packing.at_run_time ? "repack" : "pack", name));
  }
  return text;
}

Expansion::Expansion(const Definition& definition, const Kernel& kernel,
                     const NestSchedule& schedule)
    : definition_(definition), kernel_(kernel), schedule_(schedule), totals_name_(schedule.totals) {
  for (const Axis& axis : definition.axes) axes_[axis.name] = &axis;
  for (const Accumulator& acc : definition.accumulators) {
    guards_.emplace_back();
    const Expr step = without_guard(acc, guards_.back());
    values_.push_back(with_nibbles(schedule, with_unpacked(step)));
  }
  share_guards();
  for (const loop::DefinitionOutput& output : definition.outputs) {
    epilogues_.push_back(output.value);
    if (!schedule.addend) continue;
    // Once: the same may be added to the result again.
    const Expr sum = loop::var(definition.accumulators[0].name, definition.accumulators[0].type);
    bool is_taken = false;
    epilogues_.back() = loop::rewrite(output.value, [&](const Expr& e) {
      const bool adds = loop::equal(e, sum + schedule.addend);
      if (is_taken || !(adds || loop::equal(e, schedule.addend + sum))) return e;
      is_taken = true;
      return sum;
    });
  }
  reduce_axes_ = reduction_loops(definition, schedule);
  for (const Axis& axis : definition.reduce_axes) {
    if (schedule.is_block_axis(axis.name)) axes_[axis.name] = &axis;
  }
  std::erase_if(reduce_axes_, [&](const Axis& axis) { return schedule.is_block_axis(axis.name); });
}

std::string Expansion::fresh(const std::string& base) {
  int n = counters_[base]++;
  return n == 0 ? base : fmt::format("{}_{}", base, n + 1);
}

// ---- loops over the axes ------------------------------------------------------------------------

Stmt Expansion::axis_loops(size_t depth, const Bindings& bindings) {
  const StepMask& mask = schedule_.taken;
  std::vector<Stmt> body;
  if (schedule_.local_totals > 0 && depth == mask.depth) {
    totals_name_ = fresh("totals");
    const loop::Type type = definition_.accumulators[0].type;
    body.push_back(
        loop::alloc(totals_name_, type, Expr(schedule_.local_totals), loop::Memory::stack));
  }
  // Across the factor's rows, each block has bits of its own.
  const size_t blocks = mask.results.empty() ? 0 : schedule_.block_axes.size();
  if (!mask.axes.empty() && depth == mask.depth + blocks) mark_steps(bindings, body);
  body.push_back(loops_inside(depth, bindings));
  return loop::block(body);
}

Stmt Expansion::loops_inside(size_t depth, const Bindings& bindings) {
  if (depth == schedule_.order.size()) return tile(bindings);
  const std::string& name = schedule_.order[depth];
  if (name == schedule_.vector_axis) return vector_loops(depth, bindings);
  if (name == schedule_.tile_axis) return tile_loops(depth, bindings);
  Bindings inner = bindings;
  const Expr extent = axes_.at(name)->extent;
  if (schedule_.unrolled.contains(name)) {
    std::vector<Stmt> copies;
    for (int64_t i = 0; i < *static_extent(*axes_.at(name)); ++i) {
      inner[name] = Expr(i);
      copies.push_back(axis_loops(depth + 1, inner));
    }
    return loop::block(copies);
  }
  std::string variable = fresh(name);
  inner[name] = loop::var(variable);
  return loop::for_loop(variable, Expr(0), extent, axis_loops(depth + 1, inner));
}

Stmt Expansion::vector_loops(size_t depth, const Bindings& bindings) {
  std::vector<Stmt> parts;
  for (const VectorSegment& segment : schedule_.vector_segments) {
    segment_ = &segment;
    if (segment.count == 1) {
      block_ = Expr(0);
      vector_base_ = Expr(segment.begin);
      fill_panels(bindings, parts);
      parts.push_back(axis_loops(depth + 1, bindings));
      continue;
    }
    std::string variable = fresh(schedule_.vector_axis);
    block_ = loop::var(variable);
    vector_base_ = Expr(segment.begin) + block_ * Expr(segment.width());
    std::vector<Stmt> body;
    fill_panels(bindings, body);
    body.push_back(axis_loops(depth + 1, bindings));
    parts.push_back(loop::for_loop(variable, Expr(0), Expr(segment.count), loop::block(body)));
  }
  return loop::block(parts);
}

/// Operands that are rearranged one block at a time, as definitions.
void Expansion::fill_panels(const Bindings& bindings, std::vector<Stmt>& body) const {
  for (const auto& [name, packing] : schedule_.packed) {
    if (!packing.in_panel) continue;
    body.push_back(
        repack_block(definition_, kernel_, schedule_, name, *segment_, block_, bindings));
  }
}

Stmt Expansion::tile_loops(size_t depth, const Bindings& bindings) {
  std::vector<Stmt> parts;
  for (const TileSegment& segment : schedule_.tile_segments) {
    tile_segment_ = &segment;
    if (loop::is_constant(segment.count, 1)) {
      tile_base_ = segment.begin;
      unpack(bindings, parts);
      parts.push_back(axis_loops(depth + 1, bindings));
      continue;
    }
    std::string variable = fresh(schedule_.tile_axis);
    tile_base_ = segment.begin + loop::var(variable) * Expr(segment.size);
    std::vector<Stmt> body;
    unpack(bindings, body);
    body.push_back(axis_loops(depth + 1, bindings));
    parts.push_back(loop::for_loop(variable, Expr(0), segment.count, loop::block(body)));
  }
  return loop::block(parts);
}

// ---- one register tile --------------------------------------------------------------------------

Expr Expansion::slot(const Cell& cell) const {
  int64_t index = cell.m * vectors() + cell.n;
  return Expr(cell.tail ? index : index * schedule_.chains + cell.chain);
}

Expansion::Bindings Expansion::at(const Bindings& bindings, int64_t m) const {
  Bindings result = bindings;
  if (tile_segment_) result[schedule_.tile_axis] = tile_base_ + Expr(m / schedule_.jam);
  if (!schedule_.unpacked.empty()) result[kTileRow] = Expr(m);
  if (schedule_.jam_axis.empty()) return result;
  const int64_t jammed = m % schedule_.jam, inner = *static_extent(*axes_.at(schedule_.jam_axis));
  result[schedule_.jam_axis] = Expr(jammed % inner);
  if (!schedule_.outer_jam_axis.empty()) result[schedule_.outer_jam_axis] = Expr(jammed / inner);
  return result;
}

Vectorizer Expansion::vectorizer(const Expr& n) const {
  Vectorizer v;
  v.kernel = &kernel_;
  v.axis = segment_ ? schedule_.vector_axis : "";
  v.lanes = lanes();
  v.base = segment_ ? vector_base_ + n * Expr(lanes()) : Expr(0);
  v.splits = splits();
  v.split_axis = schedule_.split_axis;
  v.packed_load = [this, n](const std::string& buffer, loop::Type type, const Bindings& b) {
    return is_unpacked(buffer) ? unpacked_load(buffer, b) : packed_load(buffer, type, b, n);
  };
  v.is_packed = [this](const std::string& buffer) {
    return schedule_.packed.count(buffer) > 0 || is_unpacked(buffer);
  };
  v.accumulator = [](const std::string&) { return Expr(); };
  return v;
}

/// What a rearranged operand holds for register n of a row.
Expr Expansion::packed_load(const std::string& buffer, loop::Type type, const Bindings& place,
                            const Expr& n) const {
  const Packing& packing = schedule_.packed.at(buffer);
  if (!packing.holds_nibbles) {
    return loop::load(type.with_lanes(lanes()), packing.parameter, packed_index(buffer, place, n));
  }
  const loop::Type byte = loop::Type{kernel_.find(buffer)->element}.with_lanes(lanes());
  int64_t column = 0;
  BC_CHECK(loop::as_constant(n, column), "it is not known which register of a row is read");
  const bool is_high = packing.halves(*segment_) && column >= vectors() / 2;
  if (is_high) column -= vectors() / 2;
  const Expr bytes = loop::load(byte, packing.parameter, packed_index(buffer, place, Expr(column)));
  if (!packing.halves(*segment_)) return loop::cast(type.with_lanes(lanes()), bytes);
  return half_of(bytes, is_high);
}

Expr Expansion::packed_index(const std::string& buffer, const Bindings& place,
                             const Expr& n) const {
  const Packing& packing = schedule_.packed.at(buffer);
  Expr outer = Expr(0);
  for (size_t i = 0; i < packing.outer.size(); ++i) {
    outer = outer * Expr(packing.outer_extents[i]) + place.at(packing.outer[i]);
  }
  Expr k = Expr(0);
  for (size_t i = 0; i < packing.reduce.size(); ++i) {
    Expr at = place.at(packing.reduce[i]);
    if (packing.reversed[i]) at = Expr(packing.reduce_extents[i] - 1) - at;
    const int64_t side_by_side = steps_at_once(packing.reduce[i]);
    k = k * Expr(packing.reduce_extents[i] / side_by_side) +
        loop::floor_div(at, Expr(side_by_side));
  }
  if (packing.in_panel) {
    return k * Expr(segment_->width()) + n * Expr(lanes());
  }
  const int64_t steps = packing.reduce_count(), row = packing.row(*segment_);
  const int64_t before = packing.rows_before(schedule_.vector_segments, segment_->begin);
  Expr block = outer * Expr(segment_->count) + block_;
  return Expr(packing.outer_count() * steps * before) + block * Expr(steps * row) +
         k * Expr(row * splits()) + n * Expr(lanes());
}

Stmt Expansion::tile(const Bindings& bindings) {
  std::vector<Stmt> body;
  bool transposed = !schedule_.transposed_axis.empty() && tile_size() > 1;
  if (transposed) {
    write_transposed(bindings, body);
    return loop::block(body);
  }
  if (schedule_.interleaved) {
    write_interleaved(bindings, body);
    return loop::block(body);
  }
  start(bindings, body);
  if (!definition_.accumulators.empty()) {
    fetch_next_block(bindings, body);
    body.push_back(reduce_loops(0, bindings, {}));
    if (lanes_reduce()) {
      combine_lanes(body);
    } else {
      combine_chains(body);
    }
  }
  const VectorSegment* const segment = segment_;
  const VectorSegment whole = add_splits(bindings, body);
  if (splits() > 1) segment_ = &whole;
  if (in_blocks()) {
    finish(bindings, body);
  } else {
    write_outputs(bindings, body);
  }
  segment_ = segment;
  return loop::block(body);
}

/// Where sums are split over neighbouring lanes: registers of the whole sums in their place.
/// Returns the segment that these have.
VectorSegment Expansion::add_splits(const Bindings& bindings, std::vector<Stmt>& body) {
  if (splits() == 1) return {};
  VectorSegment whole = *segment_;
  whole.lanes /= whole.splits;
  whole.splits = 1;
  const VectorSegment* const split = segment_;
  for (size_t i = 0; i < registers_.size(); ++i) {
    const Accumulator& acc = definition_.accumulators[i];
    const std::string name = fresh(acc.name);
    body.push_back(loop::alloc(name, acc.type.with_lanes(whole.lanes), Expr(registers()),
                               loop::Memory::registers));
    for (int64_t m = 0; m < rows(); ++m) {
      const Cell cell{m, 0};
      const Expr parts = accumulator(acc.name, cell);
      Expr sum;
      for (int32_t step = 0; step < split->splits; ++step) {
        std::vector<int32_t> taken;
        for (int32_t lane = step; lane < split->lanes; lane += split->splits) taken.push_back(lane);
        const Expr part = loop::shuffle({parts}, taken);
        sum = sum ? loop::combined(acc.combine, sum, part) : part;
      }
      segment_ = &whole;
      if (schedule_.addend) sum = sum + first_value(acc, bindings, cell);
      body.push_back(loop::store(name, slot(cell), sum));
      segment_ = split;
    }
    registers_[i] = name;
  }
  return whole;
}

/// Registers for the accumulators, holding the starting values.
void Expansion::start(const Bindings& bindings, std::vector<Stmt>& body) {
  registers_.clear();
  tails_.clear();
  if (in_blocks()) return take_up(bindings, body);
  const bool begins_with_addend = static_cast<bool>(schedule_.addend);
  const auto allocate = [&](const Accumulator& acc, int32_t width, int64_t count) {
    std::string name = fresh(acc.name);
    body.push_back(
        loop::alloc(name, acc.type.with_lanes(width), Expr(count), loop::Memory::registers));
    for (int64_t i = 0; i < count; ++i) {
      const int64_t index = i / schedule_.chains;
      const Cell cell{index / vectors(), index % vectors(), i % schedule_.chains};
      Expr init = width > 1 ? loop::broadcast(acc.init, width) : acc.init;
      // The splits of a sum get it when they are added up.
      const bool takes_addend = begins_with_addend && cell.chain == 0 && splits() == 1;
      if (takes_addend) init = first_value(acc, bindings, cell);
      body.push_back(loop::store(name, Expr(i), init));
    }
    return name;
  };
  for (const Accumulator& acc : definition_.accumulators) {
    registers_.push_back(allocate(acc, register_lanes(), registers()));
    if (schedule_.has_tail) tails_.push_back(allocate(acc, 1, rows() * vectors()));
  }
}

/// What a cell's first register holds before the reduction.
Expr Expansion::first_value(const Accumulator& acc, const Bindings& bindings,
                            const Cell& cell) const {
  if (!schedule_.addend) return lanes() > 1 ? loop::broadcast(acc.init, lanes()) : acc.init;
  const Vectorizer v = vectorizer(Expr(cell.n));
  return v.widen(v.run(schedule_.addend, at(bindings, cell.m)), acc.type);
}

std::vector<Axis> reduction_loops(const Definition& definition, const NestSchedule& schedule) {
  if (schedule.reduce_order.empty()) return definition.reduce_axes;
  std::vector<Axis> result;
  for (const std::string& name : schedule.reduce_order) {
    for (const Axis& axis : definition.reduce_axes) {
      if (axis.name == name) result.push_back(axis);
    }
  }
  return result;
}

Stmt expand(const Definition& definition, const Kernel& kernel, const NestSchedule& schedule) {
  return Expansion(definition, kernel, schedule).run();
}

}  // namespace backcast
