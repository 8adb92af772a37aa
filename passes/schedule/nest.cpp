// Expansion of a definition under a NestSchedule, outermost loop first.
#include "passes/schedule/nest.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/graph/error.h"
#include "ir/loop/visit.h"
#include "passes/schedule/affine.h"
#include "passes/schedule/vectorize.h"

namespace backcast {

using loop::Accumulator;
using loop::Axis;
using loop::Combine;
using loop::Definition;
using loop::Expr;
using loop::ExprKind;
using loop::Kernel;
using loop::Op;
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
  for (const std::string& axis : unrolled) add("unroll " + axis);
  for (const auto& [name, packing] : packed) add("pack " + name);
  return text;
}

namespace {

using Bindings = std::map<std::string, Expr>;

class Expansion {
 public:
  Expansion(const Definition& definition, const Kernel& kernel, const NestSchedule& schedule)
      : definition_(definition), kernel_(kernel), schedule_(schedule) {
    for (const Axis& axis : definition.axes) axes_[axis.name] = &axis;
    for (const Accumulator& acc : definition.accumulators) split_guard(acc);
  }

  Stmt run() { return axis_loops(0, {}); }

 private:
  std::string fresh(const std::string& base) {
    int n = counters_[base]++;
    return n == 0 ? base : fmt::format("{}_{}", base, n + 1);
  }

  /// value = guard ? inner : identity, taken apart.
  void split_guard(const Accumulator& acc) {
    Expr value = acc.value;
    std::vector<Expr> guard;
    while (acc.combine != Combine::general && value->kind == ExprKind::if_then_else &&
           loop::equal(value->args[2], acc.init)) {
      for (const Expr& part : conjuncts(value->args[0])) guard.push_back(part);
      value = value->args[1];
    }
    values_.push_back(value);
    guards_.push_back(guard);
  }

  // ---- loops over the axes ----------------------------------------------------------------------

  Stmt axis_loops(size_t depth, const Bindings& bindings) {
    if (depth == schedule_.order.size()) return tile(bindings);
    const std::string& name = schedule_.order[depth];
    if (name == schedule_.vector_axis) return vector_loops(depth, bindings);
    if (name == schedule_.tile_axis) return tile_loops(depth, bindings);
    std::string variable = fresh(name);
    Bindings inner = bindings;
    inner[name] = loop::var(variable);
    return loop::for_loop(variable, Expr(0), axes_.at(name)->extent, axis_loops(depth + 1, inner));
  }

  Stmt vector_loops(size_t depth, const Bindings& bindings) {
    std::vector<Stmt> parts;
    for (const VectorSegment& segment : schedule_.vector_segments) {
      segment_ = &segment;
      if (segment.count == 1) {
        block_ = Expr(0);
        vector_base_ = Expr(segment.begin);
        parts.push_back(axis_loops(depth + 1, bindings));
        continue;
      }
      std::string variable = fresh(schedule_.vector_axis);
      block_ = loop::var(variable);
      vector_base_ = Expr(segment.begin) + block_ * Expr(segment.width());
      Stmt body = axis_loops(depth + 1, bindings);
      parts.push_back(loop::for_loop(variable, Expr(0), Expr(segment.count), body));
    }
    return loop::block(parts);
  }

  Stmt tile_loops(size_t depth, const Bindings& bindings) {
    std::vector<Stmt> parts;
    for (const TileSegment& segment : schedule_.tile_segments) {
      tile_segment_ = &segment;
      if (loop::is_constant(segment.count, 1)) {
        tile_base_ = segment.begin;
        parts.push_back(axis_loops(depth + 1, bindings));
        continue;
      }
      std::string variable = fresh(schedule_.tile_axis);
      tile_base_ = segment.begin + loop::var(variable) * Expr(segment.size);
      Stmt body = axis_loops(depth + 1, bindings);
      parts.push_back(loop::for_loop(variable, Expr(0), segment.count, body));
    }
    return loop::block(parts);
  }

  // ---- one register tile ------------------------------------------------------------------------

  int64_t tile_size() const { return tile_segment_ ? tile_segment_->size : 1; }
  int64_t vectors() const { return segment_ ? segment_->vectors : 1; }
  int32_t lanes() const { return segment_ ? segment_->lanes : 1; }
  Expr slot(int64_t m, int64_t n) const { return Expr(m * vectors() + n); }

  Bindings at(const Bindings& bindings, int64_t m) const {
    Bindings result = bindings;
    if (tile_segment_) result[schedule_.tile_axis] = tile_base_ + Expr(m);
    return result;
  }

  Vectorizer vectorizer(int64_t n) const {
    Vectorizer v;
    v.kernel = &kernel_;
    v.axis = segment_ ? schedule_.vector_axis : "";
    v.lanes = lanes();
    v.base = segment_ ? vector_base_ + Expr(n * lanes()) : Expr(0);
    v.packed_load = [this, n](const std::string& buffer, loop::Type type, const Bindings& b) {
      return packed_load(buffer, type, b, n);
    };
    v.is_packed = [this](const std::string& buffer) { return schedule_.packed.count(buffer) > 0; };
    v.accumulator = [this](const std::string&) { return Expr(); };
    return v;
  }

  Stmt tile(const Bindings& bindings) {
    std::vector<Stmt> body;
    registers_.clear();
    for (const Accumulator& acc : definition_.accumulators) {
      std::string name = fresh(acc.name);
      registers_.push_back(name);
      loop::Type type = acc.type.with_lanes(lanes());
      body.push_back(
          loop::alloc(name, type, Expr(tile_size() * vectors()), loop::Memory::registers));
      Expr init = lanes() > 1 ? loop::broadcast(acc.init, lanes()) : acc.init;
      for (int64_t i = 0; i < tile_size() * vectors(); ++i) {
        body.push_back(loop::store(name, Expr(i), init));
      }
    }
    if (!definition_.accumulators.empty()) body.push_back(reduce_loops(0, bindings, {}));
    write_outputs(bindings, body);
    return loop::block(body);
  }

  // ---- the reduction ----------------------------------------------------------------------------

  /// `fixed`: values of reduction axes that are unrolled.
  Stmt reduce_loops(size_t depth, const Bindings& bindings, const Bindings& reduce) {
    if (depth == definition_.reduce_axes.size()) return updates(bindings, reduce);
    const Axis& axis = definition_.reduce_axes[depth];
    bool border = tile_segment_ && tile_segment_->border && guarded_with_tile(axis.name);
    if (border || schedule_.unrolled.count(axis.name)) {
      std::vector<Stmt> parts;
      for (int64_t i = 0; i < *static_extent(axis); ++i) {
        Bindings inner = reduce;
        inner[axis.name] = Expr(i);
        parts.push_back(reduce_loops(depth + 1, bindings, inner));
      }
      return loop::block(parts);
    }
    Expr begin = Expr(0), end = axis.extent;
    clip(axis, bindings, begin, end);
    bool innermost = depth + 1 == definition_.reduce_axes.size();
    int64_t step = innermost ? unroll_of(axis, begin, end) : 1;
    std::string variable = fresh(axis.name);
    if (step == 1) {
      Bindings inner = reduce;
      inner[axis.name] = loop::var(variable);
      Stmt body = reduce_loops(depth + 1, bindings, inner);
      return loop::for_loop(variable, begin, end - begin, body);
    }
    std::vector<Stmt> parts;
    for (int64_t i = 0; i < step; ++i) {
      Bindings inner = reduce;
      inner[axis.name] = loop::var(variable) * Expr(step) + Expr(i);
      parts.push_back(reduce_loops(depth + 1, bindings, inner));
    }
    return loop::for_loop(variable, Expr(0), Expr(*static_extent(axis) / step), loop::block(parts));
  }

  int64_t unroll_of(const Axis& axis, const Expr& begin, const Expr& end) const {
    std::optional<int64_t> extent = static_extent(axis);
    if (!extent || !loop::is_constant(begin, 0) || !loop::is_constant(end, *extent)) return 1;
    for (int64_t step = schedule_.reduce_unroll; step > 1; --step) {
      if (*extent % step == 0 && *extent > step) return step;
    }
    return 1;
  }

  bool guarded_with_tile(const std::string& reduce_axis) const {
    for (const std::vector<Expr>& guard : guards_) {
      for (const Expr& part : guard) {
        if (mentions(part, schedule_.tile_axis) && mentions(part, reduce_axis)) return true;
      }
    }
    return false;
  }

  /// The reduction axes that a guard's part mentions.
  std::vector<std::string> reduce_axes_of(const Expr& part) const {
    std::vector<std::string> result;
    for (const Axis& axis : definition_.reduce_axes) {
      if (mentions(part, axis.name)) result.push_back(axis.name);
    }
    return result;
  }

  /// A part that one reduction loop's bounds can express: e >= 0 or e < b, affine in the loop's
  /// axis with a positive coefficient, without the tile axis and equal for all accumulators.
  bool clips(const Expr& part, const std::string& axis) const {
    if (definition_.accumulators.size() != 1) return false;
    if (part->kind != ExprKind::binary || (part->op != Op::ge && part->op != Op::lt)) return false;
    if (tile_segment_ && mentions(part, schedule_.tile_axis)) return false;
    if (!schedule_.vector_axis.empty() && mentions(part, schedule_.vector_axis)) return false;
    std::vector<std::string> axes = reduce_axes_of(part);
    if (axes.size() != 1 || axes[0] != axis || mentions(part->args[1], axis)) return false;
    std::optional<int64_t> c = coefficient(part->args[0], axis);
    return c && *c > 0 && !schedule_.unrolled.count(axis);
  }

  void clip(const Axis& axis, const Bindings& bindings, Expr& begin, Expr& end) const {
    for (const std::vector<Expr>& guard : guards_) {
      for (const Expr& part : guard) {
        if (!clips(part, axis.name)) continue;
        int64_t c = *coefficient(part->args[0], axis.name);
        Bindings at_zero = bindings;
        at_zero[axis.name] = Expr(0);
        Expr rest = loop::substitute(part->args[0], at_zero);
        Expr bound = loop::substitute(part->args[1], bindings);
        // c·r + rest >= bound  ⇔  r >= ceil((bound - rest) / c); for < the same is the end.
        Expr limit = loop::floor_div(bound - rest + Expr(c - 1), Expr(c));
        if (part->op == Op::ge) {
          begin = loop::max(begin, limit);
        } else {
          end = loop::min(end, limit);
        }
      }
    }
  }

  /// What is left of a guard at one place: true parts vanish; empty when nothing is left.
  Expr remaining_guard(size_t acc, const Bindings& at_place, bool& never) const {
    Expr left;
    never = false;
    for (const Expr& part : guards_[acc]) {
      bool with_tile = tile_segment_ && mentions(part, schedule_.tile_axis);
      if (with_tile && !tile_segment_->border) continue;  // the segment is interior
      std::vector<std::string> axes = reduce_axes_of(part);
      if (axes.size() == 1 && clips(part, axes[0]) && !with_tile) continue;  // in the loop's bounds
      Expr condition = loop::simplify(loop::substitute(part, at_place));
      int64_t value = 0;
      if (loop::as_constant(condition, value)) {
        never = never || value == 0;
        continue;
      }
      left = left ? (left && condition) : condition;
    }
    return left;
  }

  Stmt updates(const Bindings& bindings, const Bindings& reduce) {
    std::vector<Stmt> body;
    LetCache lets(body, [this](const std::string& base) { return fresh(base); });
    for (int64_t m = 0; m < tile_size(); ++m) {
      Bindings place = at(bindings, m);
      place.insert(reduce.begin(), reduce.end());
      for (int64_t n = 0; n < vectors(); ++n) update(m, n, place, lets, body);
    }
    return loop::block(body);
  }

  void update(int64_t m, int64_t n, const Bindings& place, LetCache& lets,
              std::vector<Stmt>& body) {
    Vectorizer v = vectorizer(n);
    v.accumulator = [&](const std::string& name) { return accumulator(name, m, n); };
    std::vector<std::pair<std::string, Expr>> results;
    for (size_t i = 0; i < values_.size(); ++i) {
      const Accumulator& acc = definition_.accumulators[i];
      bool never = false;
      Expr guard = remaining_guard(i, place, never);
      if (never) continue;
      Expr value = v.run(values_[i], place);
      value = v.widen(value, acc.type);
      Expr old = accumulator(acc.name, m, n);
      if (guard) {
        Stmt write = loop::store(registers_[i], slot(m, n), combine(acc.combine, old, value));
        body.push_back(loop::if_branch(guard, write));
        continue;
      }
      value = lets.hoist_loads(value);
      results.emplace_back(registers_[i], combine(acc.combine, old, value));
    }
    // Accumulators change together.
    if (results.size() > 1) {
      for (auto& [name, value] : results) value = lets.bind("next", value);
    }
    for (const auto& [name, value] : results) {
      body.push_back(loop::store(name, slot(m, n), value));
    }
  }

  Expr accumulator(const std::string& name, int64_t m, int64_t n) const {
    for (size_t i = 0; i < registers_.size(); ++i) {
      if (definition_.accumulators[i].name != name) continue;
      return loop::load(definition_.accumulators[i].type.with_lanes(lanes()), registers_[i],
                        slot(m, n));
    }
    return Expr();
  }

  Expr combine(Combine combine, const Expr& old, const Expr& value) const {
    switch (combine) {
      case Combine::sum:
        if (schedule_.use_fma && value->kind == ExprKind::binary && value->op == Op::mul &&
            loop::is_float(value.type().scalar)) {
          return loop::fma(value->args[0], value->args[1], old);
        }
        return loop::binary(Op::add, old, value);
      case Combine::prod:
        return loop::binary(Op::mul, old, value);
      case Combine::max:
        return loop::binary(Op::max, old, value);
      case Combine::min:
        return loop::binary(Op::min, old, value);
      case Combine::bit_and:
        return loop::binary(Op::bit_and, old, value);
      case Combine::bit_or:
        return loop::binary(Op::bit_or, old, value);
      case Combine::general:
        return value;
    }
    __builtin_unreachable();
  }

  Expr packed_load(const std::string& buffer, loop::Type type, const Bindings& place,
                   int64_t n) const {
    const Packing& packing = schedule_.packed.at(buffer);
    Expr outer = Expr(0);
    for (size_t i = 0; i < packing.outer.size(); ++i) {
      outer = outer * Expr(packing.outer_extents[i]) + place.at(packing.outer[i]);
    }
    Expr k = Expr(0);
    for (size_t i = 0; i < definition_.reduce_axes.size(); ++i) {
      k = k * Expr(packing.reduce_extents[i]) + place.at(definition_.reduce_axes[i].name);
    }
    int64_t steps = packing.reduce_count();
    int64_t offset = packing.outer_count() * steps * segment_->begin;
    Expr block = outer * Expr(segment_->count) + block_;
    Expr index = Expr(offset) + (block * Expr(steps) + k) * Expr(segment_->width());
    return loop::load(type.with_lanes(lanes()), buffer, index + Expr(n * lanes()));
  }

  // ---- the epilogue -----------------------------------------------------------------------------

  void write_outputs(const Bindings& bindings, std::vector<Stmt>& body) {
    for (int64_t m = 0; m < tile_size(); ++m) {
      Bindings place = at(bindings, m);
      for (int64_t n = 0; n < vectors(); ++n) {
        Vectorizer v = vectorizer(n);
        v.accumulator = [&](const std::string& name) { return accumulator(name, m, n); };
        for (const loop::DefinitionOutput& output : definition_.outputs) {
          const loop::BufferParam& param = *kernel_.find(output.buffer);
          Expr flat = loop::substitute(loop::flat_index(param.shape, output.indices), place);
          Expr value = v.widen(v.run(output.value, place), {param.element, 1});
          body.push_back(loop::store(output.buffer, v.store_index(flat), value));
        }
      }
    }
  }

  const Definition& definition_;
  const Kernel& kernel_;
  const NestSchedule& schedule_;
  std::map<std::string, const Axis*> axes_;
  std::vector<Expr> values_;               // per accumulator, without its guard
  std::vector<std::vector<Expr>> guards_;  // per accumulator, the guard's conjuncts
  std::map<std::string, int> counters_;
  // The tile under construction.
  const VectorSegment* segment_ = nullptr;
  const TileSegment* tile_segment_ = nullptr;
  Expr block_, vector_base_, tile_base_;
  std::vector<std::string> registers_;
};

}  // namespace

Stmt expand(const Definition& definition, const Kernel& kernel, const NestSchedule& schedule) {
  return Expansion(definition, kernel, schedule).run();
}

}  // namespace backcast
