// A register tile whose lanes lie along a reduction axis: its loop, and how the lanes of every sum
// become results.
#include "ir/loop/combine.h"
#include "passes/schedule/affine.h"
#include "passes/schedule/expansion.h"

namespace backcast {

using loop::Accumulator;
using loop::Axis;
using loop::Expr;
using loop::Stmt;

/// The innermost loop when the lanes lie along it: whole rounds of the chains, the registers that
/// are left, and element by element what fills no register.
Stmt Expansion::lane_loops(const Axis& axis, const Bindings& bindings, const Bindings& reduce) {
  const std::optional<int64_t> known = static_extent(axis);
  const int64_t width = schedule_.lanes, round = width * schedule_.chains;
  const Expr rounds = loop::floor_div(axis.extent, Expr(round)) * Expr(round);
  const Expr registers = loop::floor_div(axis.extent, Expr(width)) * Expr(width);
  std::vector<Stmt> parts;
  const auto add_loop = [&](const Expr& begin, const Expr& count, int64_t step, int64_t chains,
                            bool tail = false) {
    const std::string variable = fresh(axis.name);
    const Expr at = tail ? loop::var(variable) : begin + loop::var(variable) * Expr(step);
    std::vector<Stmt> body;
    for (int64_t u = 0; u < chains; ++u) {
      body.push_back(lane_updates(bindings, reduce, at + Expr(u * width), u, tail));
    }
    parts.push_back(loop::for_loop(variable, tail ? begin : Expr(0), count, loop::block(body)));
  };
  add_loop(Expr(0), loop::floor_div(axis.extent, Expr(round)), round, schedule_.chains);
  if (known) {
    for (int64_t u = 0, at = *known / round * round; at + width <= *known; ++u, at += width) {
      parts.push_back(lane_updates(bindings, reduce, Expr(at), u, false));
    }
  } else if (schedule_.chains > 1) {
    add_loop(rounds, loop::floor_div(axis.extent - rounds, Expr(width)), width, 1);
  }
  if (schedule_.has_tail) add_loop(registers, axis.extent - registers, 1, 1, true);
  return loop::block(parts);
}

/// `base`: the first element of the lane axis; that element alone in the tail. With all taps of a
/// window along the tile where the schedule put them inside.
Stmt Expansion::lane_updates(const Bindings& bindings, const Bindings& reduce, const Expr& base,
                             int64_t chain, bool tail) {
  std::vector<Stmt> body;
  LetCache lets = let_cache(body);
  const Axis& innermost = reduce_axes_.back();
  const int64_t step = tap_step(innermost);
  std::vector<std::pair<int64_t, int64_t>> steps;
  if (step > 0) steps = window_positions(innermost, step);
  for (int64_t m = 0; m < rows() && step == 0; ++m) steps.emplace_back(m, 0);
  for (const auto& [m, tap] : steps) {
    Bindings place = at(bindings, m);
    place.insert(reduce.begin(), reduce.end());
    if (step > 0) place[innermost.name] = Expr(tap);
    if (tail) place[schedule_.lane_axis] = base;
    for (int64_t n = 0; n < vectors(); ++n) {
      if (segment_) place[schedule_.vector_axis] = vector_base_ + Expr(n);
      Vectorizer v = vectorizer(Expr(n));
      v.axis = tail ? "" : schedule_.lane_axis;
      v.lanes = tail ? 1 : schedule_.lanes;
      v.base = base;
      update({m, n, chain, tail}, v, place, lets, body);
    }
  }
  return loop::block(body);
}

std::vector<Expansion::Group> Expansion::groups() const {
  std::vector<Group> result;
  if (schedule_.totals_together == Totals::rows) {
    for (int64_t n = 0; n < vectors(); ++n) {
      for (int64_t m = 0; m < rows(); m += result.back().count) {
        result.push_back({{m, n}, floor_power(rows() - m)});
      }
    }
    return result;
  }
  const int64_t together = schedule_.totals_together == Totals::columns ? vectors() : 1;
  for (int64_t m = 0; m < rows(); ++m) {
    for (int64_t n = 0; n < vectors(); n += together) result.push_back({{m, n}, together});
  }
  return result;
}

/// Chains, lanes and tails of every group of cells in one register.
void Expansion::combine_lanes(std::vector<Stmt>& body) {
  totals_.clear();
  const Naming name = naming("total", body);
  for (const Accumulator& acc : definition_.accumulators) {
    const Combining combining = [&](const Expr& a, const Expr& b) {
      return loop::combined(acc.combine, a, b);
    };
    totals_.emplace_back();
    for (const Group& group : groups()) {
      std::vector<Expr> cells, tails;
      std::vector<int32_t> order;
      for (int64_t i = 0; i < group.count; ++i) {
        Cell cell = group.first;
        (schedule_.totals_together == Totals::rows ? cell.m : cell.n) += i;
        std::vector<Expr> chains;
        for (cell.chain = 0; cell.chain < schedule_.chains; ++cell.chain) {
          chains.push_back(name(accumulator(acc.name, cell)));
        }
        for (; chains.size() > 1; chains.resize(chains.size() / 2)) {
          for (size_t u = 0; u < chains.size() / 2; ++u) {
            chains[u] = name(combining(chains[u], chains[u + chains.size() / 2]));
          }
        }
        cells.push_back(chains[0]);
        order.push_back(static_cast<int32_t>(i));
        if (!schedule_.has_tail) continue;
        tails.push_back(name(accumulator(acc.name, {cell.m, cell.n, 0, true})));
      }
      const bool alone = group.count == 1;
      Expr total = schedule_.sums_lanes && !alone ? name(loop::shuffle(cells, order))
                                                  : across_lanes(cells, combining, name);
      if (!tails.empty()) {
        total = name(combining(total, alone ? tails[0] : loop::shuffle(tails, order)));
      }
      totals_.back().push_back(total);
    }
  }
}

/// The results of a tile whose lanes lie along a reduction axis.
void Expansion::write_totals(const Bindings& bindings, std::vector<Stmt>& body) {
  const std::vector<Group> all = groups();
  for (size_t g = 0; g < all.size(); ++g) {
    const Cell& first = all[g].first;
    Vectorizer v = vectorizer(Expr(first.n));
    Bindings place = at(bindings, first.m);
    if (schedule_.totals_together == Totals::rows) {
      if (segment_) place[schedule_.vector_axis] = v.base;
      v.axis = schedule_.tile_axis;
      v.base = place.at(v.axis);
      place.erase(v.axis);
    }
    v.lanes = static_cast<int32_t>(all[g].count);
    v.accumulator = [&](const std::string& name) -> Expr {
      for (size_t i = 0; i < registers_.size(); ++i) {
        if (definition_.accumulators[i].name == name) return totals_[i][g];
      }
      return Expr();
    };
    write_row(v, place, body);
  }
}

}  // namespace backcast
