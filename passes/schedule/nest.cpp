// Expansion of a definition under a NestSchedule: the loops over its axes, the register tile and
// the epilogue. The reduction inside is in expand_reduction.cpp, its blocks in expand_blocks.cpp.
#include "passes/schedule/nest.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "ir/graph/error.h"
#include "ir/loop/visit.h"
#include "passes/schedule/affine.h"
#include "passes/schedule/expansion.h"
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
  if (!taken.axes.empty()) add("skip zeros of " + taken.factor);
  if (!transposed_axis.empty()) add("transpose " + transposed_axis);
  if (interleaved) add("interleave");
  if (rolled_epilogue) add("rolled epilogue");
  for (const Fetch& fetch : fetches) add("fetch " + fetch.buffer);
  if (!unpacked.empty()) add("unpack");
  if (addend) add("begin with an addend");
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
    values_.push_back(with_unpacked(without_guard(acc, guards_.back())));
  }
  share_guards();
  for (const loop::DefinitionOutput& output : definition.outputs) {
    epilogues_.push_back(output.value);
    if (!schedule.addend) continue;
    const Expr sum = loop::var(definition.accumulators[0].name, definition.accumulators[0].type);
    epilogues_.back() = loop::rewrite(output.value, [&](const Expr& e) {
      const bool adds = loop::equal(e, sum + schedule.addend);
      return adds || loop::equal(e, schedule.addend + sum) ? sum : e;
    });
  }
  for (const std::string& name : schedule.reduce_order) {
    for (const Axis& axis : definition.reduce_axes) {
      if (axis.name == name) reduce_axes_.push_back(axis);
    }
  }
  if (schedule.reduce_order.empty()) reduce_axes_ = definition.reduce_axes;
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
  std::string variable = fresh(name);
  Bindings inner = bindings;
  inner[name] = loop::var(variable);
  const Expr extent = axes_.at(name)->extent;
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

Vectorizer Expansion::vectorizer(int64_t n) const {
  Vectorizer v;
  v.kernel = &kernel_;
  v.axis = segment_ ? schedule_.vector_axis : "";
  v.lanes = lanes();
  v.base = segment_ ? vector_base_ + Expr(n * lanes()) : Expr(0);
  v.packed_load = [this, n](const std::string& buffer, loop::Type type, const Bindings& b) {
    return is_unpacked(buffer) ? unpacked_load(buffer, b) : packed_load(buffer, type, b, n);
  };
  v.is_packed = [this](const std::string& buffer) {
    return schedule_.packed.count(buffer) > 0 || is_unpacked(buffer);
  };
  v.accumulator = [](const std::string&) { return Expr(); };
  return v;
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
  if (in_blocks()) {
    finish(bindings, body);
  } else {
    write_outputs(bindings, body);
  }
  return loop::block(body);
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
      if (begins_with_addend && cell.chain == 0) init = first_value(acc, bindings, cell);
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
  const Vectorizer v = vectorizer(cell.n);
  return v.widen(v.run(schedule_.addend, at(bindings, cell.m)), acc.type);
}

// ---- the epilogue -------------------------------------------------------------------------------

/// What is stored of register n of a row: all of it or, beside spare lanes, parts that are powers
/// of two.
std::vector<Expansion::Part> Expansion::stored_parts(int64_t n) const {
  if (segment_ == nullptr || segment_->spare == 0 || n + 1 < vectors()) return {{0, lanes()}};
  std::vector<Part> parts;
  const int32_t used = lanes() - segment_->spare;
  for (int32_t width = lanes(), at = 0; width > 0; width /= 2) {
    if (at + width > used) continue;
    parts.push_back({at, width});
    at += width;
  }
  return parts;
}

/// The vectorizer of a part of register n, whose sum is `whole`.
Vectorizer Expansion::part_vectorizer(int64_t n, const Part& part,
                                      const std::function<Expr(const std::string&)>& whole) const {
  Vectorizer v = vectorizer(n);
  v.accumulator = whole;
  if (part.lanes == lanes()) return v;
  v.base = v.base + Expr(part.first);
  v.lanes = part.lanes;
  v.accumulator = [whole, part](const std::string& name) -> Expr {
    const Expr value = whole(name);
    if (!value) return value;
    std::vector<int32_t> taken(static_cast<size_t>(part.lanes));
    std::iota(taken.begin(), taken.end(), part.first);
    return loop::shuffle({value}, taken);
  };
  return v;
}

void Expansion::write_outputs(const Bindings& bindings, std::vector<Stmt>& body) {
  if (schedule_.rolled_epilogue && rows() > 1) return write_rows_in_loop(bindings, body);
  bool whole_rows = schedule_.row_epilogue && vectors() > 1;
  for (int64_t m = 0; m < rows(); ++m) {
    for (int64_t n = 0; n < (whole_rows ? 1 : vectors()); ++n) {
      if (!lanes_reduce()) {
        for (const Part& part : stored_parts(n)) {
          const auto sum = [&, m, n](const std::string& name) { return accumulator(name, {m, n}); };
          write_row(part_vectorizer(n, part, sum), at(bindings, m), body);
        }
        continue;
      }
      Vectorizer v = vectorizer(n);
      if (whole_rows) v.lanes = static_cast<int32_t>(vectors());
      v.accumulator = [&, m, n](const std::string& name) -> Expr {
        for (size_t i = 0; i < registers_.size(); ++i) {
          if (definition_.accumulators[i].name != name) continue;
          return totals_[i][static_cast<size_t>(whole_rows ? m : m * vectors() + n)];
        }
        return Expr();
      };
      write_row(v, at(bindings, m), body);
    }
  }
}

void Expansion::write_rows_in_loop(const Bindings& bindings, std::vector<Stmt>& body) {
  std::vector<std::string> sums;
  for (size_t i = 0; i < registers_.size(); ++i) {
    const Accumulator& acc = definition_.accumulators[i];
    const loop::Type type = acc.type.with_lanes(lanes());
    sums.push_back(fresh("sums"));
    body.push_back(loop::alloc(sums[i], type, Expr(rows() * vectors()), loop::Memory::stack));
    for (int64_t cell = 0; cell < rows() * vectors(); ++cell) {
      const Expr sum = loop::load(type, registers_[i], Expr(cell * schedule_.chains));
      body.push_back(loop::store(sums[i], Expr(cell), sum));
    }
  }
  for (int64_t n = 0; n < vectors(); ++n) {
    const std::string variable = fresh("row");
    const Expr m = loop::var(variable);
    const auto sum = [&, n](const std::string& name) -> Expr {
      for (size_t i = 0; i < sums.size(); ++i) {
        const Accumulator& acc = definition_.accumulators[i];
        if (acc.name != name) continue;
        return loop::load(acc.type.with_lanes(lanes()), sums[i], m * Expr(vectors()) + Expr(n));
      }
      return Expr();
    };
    Bindings place = bindings;
    place[schedule_.tile_axis] = tile_base_ + m;
    std::vector<Stmt> row;
    for (const Part& part : stored_parts(n)) write_row(part_vectorizer(n, part, sum), place, row);
    body.push_back(loop::for_loop(variable, Expr(0), Expr(rows()), loop::block(row)));
  }
}

void Expansion::write_row(const Vectorizer& v, const Bindings& place, std::vector<Stmt>& body) {
  // All values before all stores: a result may lie where another's value reads.
  const bool several = definition_.outputs.size() > 1;
  std::vector<Stmt> stores;
  for (size_t i = 0; i < definition_.outputs.size(); ++i) {
    const loop::DefinitionOutput& output = definition_.outputs[i];
    const loop::BufferParam& param = *kernel_.find(output.buffer);
    Expr flat = loop::substitute(loop::flat_index(param.shape, output.indices), place);
    Expr value = v.widen(v.run(epilogues_[i], place), {param.element, 1});
    if (several) {
      const std::string name = fresh("result");
      body.push_back(loop::let(name, value));
      value = loop::var(name, value.type());
    }
    stores.push_back(loop::store(output.buffer, v.store_index(flat), value));
  }
  body.insert(body.end(), stores.begin(), stores.end());
}

Naming Expansion::naming(const std::string& base, std::vector<Stmt>& body) {
  return [this, base, &body](const Expr& value) {
    const std::string variable = fresh(base);
    body.push_back(loop::let(variable, value));
    return loop::var(variable, value.type());
  };
}

/// Blocks of lanes × lanes elements: what lies contiguous along the tile axis is read so and turned
/// in registers.
void Expansion::write_transposed(const Bindings& bindings, std::vector<Stmt>& body) {
  const Naming name = naming("turned", body);
  for (int64_t first = 0; first < tile_size(); first += lanes()) {
    std::vector<std::pair<Expr, std::vector<Expr>>> blocks;
    for (int64_t m = 0; m < lanes(); ++m) {
      Vectorizer v = vectorizer(0);
      v.turned_load = [&](const std::string& buffer, loop::Type type, const Expr& flat) -> Expr {
        std::optional<int64_t> c = coefficient(flat, schedule_.transposed_axis);
        std::optional<int64_t> along = coefficient(flat, schedule_.vector_axis);
        if (lanes() == 1 || !c || *c != 1 || !along || *along == 0) return Expr();
        Expr whole = loop::load(type, buffer, flat);
        for (const auto& [known, block] : blocks) {
          if (loop::equal(known, whole)) return block[static_cast<size_t>(m)];
        }
        std::vector<Expr> rows;
        for (int64_t i = 0; i < lanes(); ++i) {
          Bindings row = at(bindings, first);
          row[schedule_.vector_axis] = vector_base_ + Expr(i);
          rows.push_back(
              name(loop::load(type.with_lanes(lanes()), buffer, loop::substitute(flat, row))));
        }
        blocks.emplace_back(whole, transpose_lanes(rows, name));
        return blocks.back().second[static_cast<size_t>(m)];
      };
      write_row(v, at(bindings, first + m), body);
    }
  }
}

/// One register for each element of the jammed axis, lane by lane in turn.
void Expansion::write_interleaved(const Bindings& bindings, std::vector<Stmt>& body) {
  const Naming name = naming("lanes", body);
  const loop::DefinitionOutput& output = definition_.outputs.at(0);
  const loop::BufferParam& param = *kernel_.find(output.buffer);
  const Expr whole = before_narrowing(epilogues_[0]);  // few bits are dear to shuffle
  for (int64_t n = 0; n < vectors(); ++n) {
    const Vectorizer v = vectorizer(n);
    std::vector<Expr> values;
    for (int64_t m = 0; m < rows(); ++m) {
      values.push_back(name(v.widen(v.run(whole, at(bindings, m)), whole.type())));
    }
    Bindings first = at(bindings, 0);
    first[schedule_.vector_axis] = v.base;
    Expr place = loop::substitute(loop::flat_index(param.shape, output.indices), first);
    for (const Expr& value : interleave_lanes(values, name)) {
      const loop::Type stored{param.element, value.type().lanes};
      body.push_back(loop::store(output.buffer, place, loop::cast(stored, value)));
      place = place + Expr(lanes());
    }
  }
}

Stmt expand(const Definition& definition, const Kernel& kernel, const NestSchedule& schedule) {
  return Expansion(definition, kernel, schedule).run();
}

}  // namespace backcast
