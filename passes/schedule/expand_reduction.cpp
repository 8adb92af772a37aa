// The reduction inside a register tile: loops and their bounds, guards, updates of the
// accumulators. Lanes along a reduction axis are in expand_lanes.cpp.
#include <algorithm>
#include <utility>

#include "ir/graph/error.h"
#include "ir/loop/combine.h"
#include "ir/loop/visit.h"
#include "passes/schedule/affine.h"
#include "passes/schedule/expansion.h"
#include "passes/schedule/join_factors.h"
#include "passes/schedule/nibbles.h"
#include "passes/schedule/window.h"

namespace backcast {

using loop::Accumulator;
using loop::Axis;
using loop::Combine;
using loop::Expr;
using loop::ExprKind;
using loop::Op;
using loop::Stmt;

namespace {

/// The sum of all lanes; of products that an instruction adds up itself, one after another.
Expr sum_of_lanes(const Expr& value) {
  const auto is = [](const Expr& e, Op op) { return e->kind == ExprKind::binary && e->op == op; };
  if (is(value, Op::add) && is(value->args[1], Op::dot4_signed)) {
    return sum_of_lanes(value->args[0]) + sum_of_lanes(value->args[1]);
  }
  return loop::reduce_lanes(Op::add, value);
}

}  // namespace

/// Accumulators that read each other change together, so that their guards must be one.
void Expansion::share_guards() {
  share_guards_ = std::all_of(guards_.begin(), guards_.end(), [&](const std::vector<Expr>& guard) {
    return std::equal(guard.begin(), guard.end(), guards_[0].begin(), guards_[0].end(),
                      loop::equal);
  });
  const auto& accumulators = definition_.accumulators;
  for (size_t i = 0; i < accumulators.size() && !share_guards_; ++i) {
    if (accumulators[i].combine != Combine::general) continue;
    values_[i] = accumulators[i].value;
    guards_[i].clear();
  }
}

/// `fixed`: values of reduction axes that are unrolled.
Stmt Expansion::reduce_loops(size_t depth, const Bindings& bindings, const Bindings& reduce) {
  const bool has_factor =
      whole_sums_.empty() && rows() * vectors() * schedule_.chains <= schedule_.factored_sums;
  if (has_factor && depth == schedule_.factor_depth) {
    return factored_loops(depth, bindings, reduce);
  }
  if (depth == reduce_axes_.size()) return updates(bindings, reduce);
  const Axis& axis = reduce_axes_[depth];
  if (!schedule_.taken.axes.empty() && axis.name == schedule_.taken.axes.front()) {
    return masked_steps(bindings, reduce);
  }
  if (axis.name == schedule_.lane_axis) return lane_loops(axis, bindings, reduce);
  if (const std::string jam = jam_guarded_with(axis.name); !jam.empty()) {
    return jam_loops(depth, axis, jam, bindings, reduce);
  }
  const bool border =
      tile_segment_ && tile_segment_->border && guarded_with(schedule_.tile_axis, axis.name);
  const bool innermost = depth + 1 == reduce_axes_.size();
  const bool loops =
      (innermost && schedule_.border_loops) || static_extent(axis).value_or(0) > kUnrolledTaps;
  if (border && loops && !schedule_.unrolled.count(axis.name)) {
    return border_loops(depth, axis, bindings, reduce);
  }
  if (border || schedule_.unrolled.count(axis.name)) {
    int64_t window = tap_step(axis);
    if (window > 0) return window_updates(axis, window, bindings, reduce);
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
  const int64_t at_once = steps_at_once(axis.name);
  if (at_once > 1) end = Expr(*static_extent(axis) / at_once);
  int64_t step = innermost ? unroll_of(axis, begin, end) : 1;
  std::string variable = fresh(axis.name);
  if (step == 1) {
    Bindings inner = reduce;
    inner[axis.name] = loop::var(variable) * Expr(at_once);
    Stmt body = reduce_loops(depth + 1, bindings, inner);
    return loop::for_loop(variable, begin, end - begin, body);
  }
  std::vector<Stmt> parts;
  for (int64_t i = 0; i < step; ++i) {
    Bindings inner = reduce;
    inner[axis.name] = loop::var(variable) * Expr(step) + Expr(i);
    chain_ = i % schedule_.chains;
    copy_ = i;
    parts.push_back(reduce_loops(depth + 1, bindings, inner));
  }
  chain_ = copy_ = 0;
  if (schedule_.joined_steps > 1 && step % schedule_.joined_steps == 0) {
    parts = join_factors(parts, schedule_.joined_steps,
                         [&](const std::string& base) { return fresh(base); });
  }
  return loop::for_loop(variable, Expr(0), Expr(*static_extent(axis) / step), loop::block(parts));
}

/// The loops of what has a factor in common: a sum of their own, which it then multiplies.
Stmt Expansion::factored_loops(size_t depth, const Bindings& bindings, const Bindings& reduce) {
  const Accumulator& acc = definition_.accumulators[0];
  const loop::Type type = acc.type.with_lanes(register_lanes());
  std::vector<Stmt> body;
  const std::string part = fresh("part");
  body.push_back(loop::alloc(part, type, Expr(registers()), loop::Memory::registers));
  const Expr none = loop::constant(acc.type, 0);
  const Expr zero = register_lanes() > 1 ? loop::broadcast(none, register_lanes()) : none;
  for (int64_t i = 0; i < registers(); ++i) {
    body.push_back(loop::store(part, Expr(i), zero));
  }
  whole_sums_ = std::exchange(registers_[0], part);
  const Expr step = std::exchange(values_[0], with_nibbles(schedule_, schedule_.factored));
  body.push_back(reduce_loops(depth, bindings, reduce));
  values_[0] = step;
  combine_chains(body);
  registers_[0] = std::exchange(whole_sums_, "");
  LetCache lets = let_cache(body);
  for (int64_t m = 0; m < rows(); ++m) {
    Bindings place = at(bindings, m);
    place.insert(reduce.begin(), reduce.end());
    for (int64_t n = 0; n < vectors(); ++n) {
      const Vectorizer v = vectorizer(Expr(n));
      const Expr factor = lets.hoist_loads(v.widen(v.run(schedule_.factor, place), acc.type));
      const Expr at = slot({m, n}), sum = loop::load(type, part, at);
      const Expr old = accumulator(acc.name, {m, n});
      body.push_back(loop::store(registers_[0], at,
                                 schedule_.use_fma
                                     ? loop::fma(sum, factor, old)
                                     : loop::combined(acc.combine, old, sum * factor)));
    }
  }
  return loop::block(body);
}

/// The jammed axis with which a guard mentions the reduction axis; may be empty.
std::string Expansion::jam_guarded_with(const std::string& reduce_axis) const {
  for (const std::string& jam : {schedule_.jam_axis, schedule_.outer_jam_axis}) {
    if (!jam.empty() && guarded_with(jam, reduce_axis)) return jam;
  }
  return "";
}

/// A loop where every guard with the jammed axis holds, its other elements one by one.
Stmt Expansion::jam_loops(size_t depth, const Axis& axis, const std::string& jam,
                          const Bindings& bindings, const Bindings& reduce) {
  const auto holds = [&](int64_t at) { return jam_guards_hold(jam, axis.name, at); };
  return loop_inside(depth, axis, holds, jam, bindings, reduce);
}

/// The same for the guards of a border tile.
Stmt Expansion::border_loops(size_t depth, const Axis& axis, const Bindings& bindings,
                             const Bindings& reduce) {
  const auto holds = [&](int64_t at) { return border_guards_hold(axis.name, at); };
  return loop_inside(depth, axis, holds, schedule_.tile_axis, bindings, reduce);
}

/// A loop over the elements for which `holds`, the guards with axis `tiled`, is true, the others
/// one by one.
Stmt Expansion::loop_inside(size_t depth, const Axis& axis,
                            const std::function<bool(int64_t)>& holds, const std::string& tiled,
                            const Bindings& bindings, const Bindings& reduce) {
  int64_t extent = *static_extent(axis), low = 0, high = extent;
  while (low < extent && !holds(low)) ++low;
  while (high > low && !holds(high - 1)) --high;
  std::vector<Stmt> parts;
  Bindings inner = reduce;
  const auto add_single = [&](int64_t i) {
    inner[axis.name] = Expr(i);
    parts.push_back(reduce_loops(depth + 1, bindings, inner));
  };
  for (int64_t i = 0; i < low; ++i) add_single(i);
  if (high > low) {
    std::string variable = fresh(axis.name);
    inner[axis.name] = loop::var(variable);
    inside_.insert(tiled);
    Stmt body = reduce_loops(depth + 1, bindings, inner);
    inside_.erase(tiled);
    parts.push_back(loop::for_loop(variable, Expr(low), Expr(high - low), body));
  }
  for (int64_t i = high; i < extent; ++i) add_single(i);
  return loop::block(parts);
}

/// For every row of the tile.
bool Expansion::border_guards_hold(const std::string& reduce_axis, int64_t at) const {
  for (const std::vector<Expr>& guard : guards_) {
    for (const Expr& part : guard) {
      if (!mentions(part, schedule_.tile_axis)) continue;
      for (int64_t m = 0; m < tile_size(); ++m) {
        const Expr place = loop::substitute(
            part,
            {{schedule_.tile_axis, loop::simplify(tile_base_ + Expr(m))}, {reduce_axis, Expr(at)}});
        int64_t holds = 0;
        if (!loop::as_constant(loop::simplify(place), holds) || holds == 0) return false;
      }
    }
  }
  return true;
}

bool Expansion::jam_guards_hold(const std::string& jam, const std::string& reduce_axis,
                                int64_t at) const {
  const int64_t elements = *static_extent(*axes_.at(jam));
  for (const std::vector<Expr>& guard : guards_) {
    for (const Expr& part : guard) {
      if (!mentions(part, jam)) continue;
      for (int64_t j = 0; j < elements; ++j) {
        if (evaluate(part, {{jam, j}, {reduce_axis, at}}) == 0) return false;
      }
    }
  }
  return true;
}

int64_t Expansion::unroll_of(const Axis& axis, const Expr& begin, const Expr& end) const {
  // Compilers let sums go on in the registers of what is repeated: copies would ask for more.
  if (splits() > 1) return 1;
  std::optional<int64_t> extent = static_extent(axis);
  if (!extent || !loop::is_constant(begin, 0) || !loop::is_constant(end, *extent)) return 1;
  for (int64_t step = schedule_.reduce_unroll; step > 1; --step) {
    if (*extent % step == 0 && *extent > step) return step;
  }
  return 1;
}

bool Expansion::guarded_with(const std::string& axis, const std::string& reduce_axis) const {
  for (const std::vector<Expr>& guard : guards_) {
    for (const Expr& part : guard) {
      if (mentions(part, axis) && mentions(part, reduce_axis)) return true;
    }
  }
  return false;
}

/// The axes of the reduction's loops that a guard's part mentions.
std::vector<std::string> Expansion::reduce_axes_of(const Expr& part) const {
  std::vector<std::string> result;
  for (const Axis& axis : reduce_axes_) {
    if (mentions(part, axis.name)) result.push_back(axis.name);
  }
  return result;
}

/// A part that one reduction loop's bounds can express: e >= 0 or e < b, affine in the loop's
/// axis with a positive coefficient, without the tile axis and equal for all accumulators.
bool Expansion::clips(const Expr& part, const std::string& axis) const {
  if (!share_guards_) return false;
  if (part->kind != ExprKind::binary || (part->op != Op::ge && part->op != Op::lt)) return false;
  if (tile_segment_ && !tile_segment_->clipped && mentions(part, schedule_.tile_axis)) return false;
  for (const std::string& jam : {schedule_.jam_axis, schedule_.outer_jam_axis}) {
    if (!jam.empty() && mentions(part, jam)) return false;
  }
  if (!schedule_.vector_axis.empty() && mentions(part, schedule_.vector_axis)) return false;
  std::vector<std::string> axes = reduce_axes_of(part);
  if (axes.size() != 1 || axes[0] != axis || mentions(part->args[1], axis)) return false;
  std::optional<int64_t> c = coefficient(part->args[0], axis);
  return c && *c > 0 && !schedule_.unrolled.count(axis);
}

void Expansion::clip(const Axis& axis, const Bindings& bindings, Expr& begin, Expr& end) const {
  const Bindings place = at(bindings, 0);
  for (const std::vector<Expr>& guard : guards_) {
    for (const Expr& part : guard) {
      if (!clips(part, axis.name)) continue;
      int64_t c = *coefficient(part->args[0], axis.name);
      Bindings at_zero = place;
      at_zero[axis.name] = Expr(0);
      Expr rest = loop::substitute(part->args[0], at_zero);
      Expr bound = loop::substitute(part->args[1], place);
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
Expr Expansion::remaining_guard(size_t acc, const Bindings& at_place, bool& never) const {
  Expr left;
  never = false;
  if (guards_hold_) return left;
  for (const Expr& part : guards_[acc]) {
    bool with_tile = tile_segment_ && mentions(part, schedule_.tile_axis);
    const bool is_interior = with_tile && !tile_segment_->border && !tile_segment_->clipped;
    if (is_interior) continue;
    const bool holds = std::any_of(inside_.begin(), inside_.end(),
                                   [&](const std::string& axis) { return mentions(part, axis); });
    if (holds) continue;
    std::vector<std::string> axes = reduce_axes_of(part);
    if (axes.size() == 1 && clips(part, axes[0])) continue;  // in the loop's bounds
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

/// How many taps neighbours in the tile are apart, where the schedule put them innermost; else 0.
int64_t Expansion::tap_step(const Axis& axis) const {
  if (!tile_segment_) return 0;
  const Axis* taps = window_taps(definition_, kernel_, schedule_);
  if (taps == nullptr || taps->name != axis.name) return 0;
  return window_step(definition_, kernel_, schedule_.tile_axis, axis);
}

/// The taps of a window by the position they read, so that each value is loaded once and its
/// register is free again at once. Every accumulator takes its taps in their order.
Stmt Expansion::window_updates(const Axis& axis, int64_t step, const Bindings& bindings,
                               const Bindings& reduce) {
  std::vector<Stmt> body;
  LetCache lets = let_cache(body);
  fetch_ahead(bindings, reduce, body);
  fetch_turns(bindings, reduce, axis, body);
  for (const auto& [m, tap] : window_positions(axis, step)) {
    Bindings place = at(bindings, m);
    place.insert(reduce.begin(), reduce.end());
    place[axis.name] = Expr(tap);
    for (int64_t n = 0; n < vectors(); ++n) update({m, n}, vectorizer(Expr(n)), place, lets, body);
  }
  return loop::block(body);
}

/// Rows of the tile and taps, in the order of the positions that they read.
std::vector<std::pair<int64_t, int64_t>> Expansion::window_positions(const Axis& axis,
                                                                     int64_t step) const {
  std::vector<std::pair<int64_t, int64_t>> result;
  const int64_t taps = *static_extent(axis);
  for (int64_t position = 0; position <= (rows() - 1) * step + taps - 1; ++position) {
    for (int64_t m = 0; m < rows(); ++m) {
      const int64_t tap = position - m * step;
      if (tap >= 0 && tap < taps) result.emplace_back(m, tap);
    }
  }
  return result;
}

/// The products of a sum's step where words hold more than two pairs of factors: a pair that is
/// taken out serves the whole tile before the next one needs its register.
std::vector<Expr> Expansion::terms_in_turn() const {
  std::vector<Expr> terms;
  if (values_.size() != 1) return terms;
  const std::function<void(const Expr&)> collect = [&](const Expr& e) {
    if (e->kind == ExprKind::binary && e->op == Op::add) {
      collect(e->args[0]);
      collect(e->args[1]);
    } else {
      terms.push_back(e);
    }
  };
  collect(values_[0]);
  const bool are_products = std::ranges::all_of(
      terms, [](const Expr& e) { return e->kind == ExprKind::binary && e->op == Op::dot2; });
  return are_products && terms.size() > 2 ? terms : std::vector<Expr>{};
}

Stmt Expansion::updates(const Bindings& bindings, const Bindings& reduce) {
  std::vector<Stmt> body;
  LetCache lets = let_cache(body);
  fetch_ahead(bindings, reduce, body);
  fetch_operands(bindings, reduce, body);
  std::vector<Bindings> places;
  for (int64_t m = 0; m < rows(); ++m) {
    places.push_back(at(bindings, m));
    places[static_cast<size_t>(m)].insert(reduce.begin(), reduce.end());
  }
  const auto update_cell = [&](int64_t m, int64_t n) {
    update({m, n, chain_}, vectorizer(Expr(n)), places[static_cast<size_t>(m)], lets, body);
  };
  if (const std::vector<Expr> terms = terms_in_turn(); !terms.empty() && !at_border_) {
    const Expr all = values_[0];
    for (const Expr& term : terms) {
      values_[0] = term;
      for (int64_t m = 0; m < rows(); ++m) {
        for (int64_t n = 0; n < vectors(); ++n) update_cell(m, n);
      }
    }
    values_[0] = all;
    return loop::block(body);
  }
  if (schedule_.by_columns && !at_border_) {
    for (int64_t n = 0; n < vectors(); ++n) {
      for (int64_t m = 0; m < rows(); ++m) update_cell(m, n);
    }
    return loop::block(body);
  }
  for (int64_t m = 0; m < rows(); ++m) {
    if (at_border_) {
      border_updates(m, places[static_cast<size_t>(m)], body);
      continue;
    }
    for (int64_t n = 0; n < vectors(); ++n) update_cell(m, n);
  }
  return loop::block(body);
}

void Expansion::update(const Cell& cell, const Vectorizer& base, const Bindings& place,
                       LetCache& lets, std::vector<Stmt>& body) {
  Vectorizer v = base;
  v.accumulator = [&](const std::string& name) { return accumulator(name, cell); };
  std::vector<std::pair<std::string, Expr>> results;
  Expr shared_guard;
  for (size_t i = 0; i < values_.size(); ++i) {
    const Accumulator& acc = definition_.accumulators[i];
    const std::string& target = cell.tail ? tails_[i] : registers_[i];
    bool never = false;
    Expr guard = remaining_guard(i, place, never);
    if (never) continue;
    Expr value = v.widen(v.run(values_[i], place), acc.type);
    if (schedule_.sums_lanes) value = sum_of_lanes(value);
    Expr old = accumulator(acc.name, cell);
    const auto taken_in = [&](const Expr& e) {
      bool product = acc.combine == Combine::sum && e->kind == ExprKind::binary &&
                     e->op == Op::mul && loop::is_float(e.type().scalar);
      return product && schedule_.use_fma ? loop::fma(e->args[0], e->args[1], old)
                                          : loop::combined(acc.combine, old, e);
    };
    if (!share_guards_ && static_cast<bool>(guard)) {
      body.push_back(loop::if_branch(guard, loop::store(target, slot(cell), taken_in(value))));
      continue;
    }
    shared_guard = guard;
    results.emplace_back(target, taken_in(guard ? value : lets.hoist_loads(value)));
  }
  std::vector<Stmt> guarded;
  LetCache inside = let_cache(guarded);
  // Accumulators change together.
  if (results.size() > 1) {
    for (auto& [name, value] : results) value = (shared_guard ? inside : lets).bind("next", value);
  }
  std::vector<Stmt>& steps = shared_guard ? guarded : body;
  for (const auto& [name, value] : results) steps.push_back(loop::store(name, slot(cell), value));
  if (shared_guard) body.push_back(loop::if_branch(shared_guard, loop::block(guarded)));
}

Expr Expansion::accumulator(const std::string& name, const Cell& cell) const {
  for (size_t i = 0; i < registers_.size(); ++i) {
    const Accumulator& acc = definition_.accumulators[i];
    if (acc.name != name) continue;
    return loop::load(acc.type.with_lanes(cell.tail ? 1 : register_lanes()),
                      cell.tail ? tails_[i] : registers_[i], slot(cell));
  }
  return Expr();
}

/// The chains of every cell in the first of its registers.
void Expansion::combine_chains(std::vector<Stmt>& body) const {
  for (size_t i = 0; i < registers_.size(); ++i) {
    const Accumulator& acc = definition_.accumulators[i];
    for (int64_t cell = 0; cell < rows() * vectors(); ++cell) {
      const auto chain = [&](int64_t u) { return Expr(cell * schedule_.chains + u); };
      const auto value = [&](int64_t u) {
        return loop::load(acc.type.with_lanes(register_lanes()), registers_[i], chain(u));
      };
      for (int64_t half = schedule_.chains / 2; half > 0; half /= 2) {
        for (int64_t u = 0; u < half; ++u) {
          const Expr both = loop::combined(acc.combine, value(u), value(u + half));
          body.push_back(loop::store(registers_[i], chain(u), both));
        }
      }
    }
  }
}

}  // namespace backcast
