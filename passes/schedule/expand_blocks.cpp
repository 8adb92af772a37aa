// A reduction in blocks: the running totals of its tiles wait in a buffer between two of them.
#include <algorithm>

#include "passes/schedule/affine.h"
#include "passes/schedule/expansion.h"

namespace backcast {

using loop::Accumulator;
using loop::Expr;
using loop::Stmt;

/// Whether this is the first or the last block of all.
Expr Expansion::in_block(const Bindings& bindings, bool is_last) const {
  Expr condition;
  for (const std::string& axis : schedule_.block_axes) {
    const Expr at = Expr(is_last ? *static_extent(*axes_.at(axis)) - 1 : 0);
    const Expr part = loop::binary(loop::Op::eq, bindings.at(axis), at);
    condition = condition ? (condition && part) : part;
  }
  return condition;
}

/// The number of a cell's row among the `rows` of a block.
Expr Expansion::row_in_block(const Bindings& bindings, const Cell& cell, int64_t& rows) const {
  Expr row = Expr(0);
  rows = 1;
  const auto& order = schedule_.order;
  const auto blocks = std::find(order.begin(), order.end(), schedule_.block_axes.front());
  for (auto axis = order.begin(); axis != order.end(); ++axis) {
    const std::string& name = *axis;
    if (name == schedule_.vector_axis || schedule_.is_block_axis(name)) continue;
    if (axis < blocks) continue;
    const auto most = schedule_.most.find(name);
    const int64_t extent =
        most != schedule_.most.end() ? most->second : *static_extent(*axes_.at(name));
    const bool tiled = name == schedule_.tile_axis;
    const Expr at = tiled ? tile_base_ + Expr(cell.m / schedule_.jam) : bindings.at(name);
    row = row * Expr(extent) + at;
    rows *= extent;
  }
  rows *= schedule_.jam;
  return row * Expr(schedule_.jam) + Expr(cell.m % schedule_.jam);
}

/// Where a cell's running total waits between two blocks.
Expr Expansion::waiting(const Bindings& bindings, const Cell& cell) const {
  int64_t rows = 1;
  const Expr row = row_in_block(bindings, cell, rows);
  const int64_t width = segment_->width();
  if (schedule_.local_totals > 0) return row * Expr(width) + Expr(cell.n * lanes());
  const bool grouped = !schedule_.columns_axis.empty();
  const Expr group = grouped ? bindings.at(schedule_.columns_axis) : Expr(0);
  if (schedule_.totals_row > 0) {
    return row * Expr(schedule_.totals_row) + group * Expr(schedule_.columns()) +
           Expr(segment_->begin) + block_ * Expr(width) + Expr(cell.n * lanes());
  }
  return group * Expr(schedule_.columns() * rows) + Expr(segment_->begin * rows) +
         (block_ * Expr(rows) + row) * Expr(width) + Expr(cell.n * lanes());
}

/// Registers for the accumulators, holding what the block before left.
void Expansion::take_up(const Bindings& bindings, std::vector<Stmt>& body) {
  const Accumulator& acc = definition_.accumulators[0];
  const loop::Type type = acc.type.with_lanes(lanes());
  registers_ = {fresh(acc.name)};
  body.push_back(loop::alloc(registers_[0], type, Expr(registers()), loop::Memory::registers));
  std::vector<Stmt> first, later;
  for (int64_t m = 0; m < rows(); ++m) {
    for (int64_t n = 0; n < vectors(); ++n) {
      const Cell cell{m, n};
      first.push_back(loop::store(registers_[0], slot(cell), first_value(acc, bindings, cell)));
      later.push_back(loop::store(registers_[0], slot(cell),
                                  loop::load(type, totals_name_, waiting(bindings, cell))));
      const Expr none = loop::broadcast(acc.init, lanes());
      for (int64_t chain = 1; chain < schedule_.chains; ++chain) {
        body.push_back(loop::store(registers_[0], slot({m, n, chain}), none));
      }
    }
  }
  body.push_back(
      loop::if_branch(in_block(bindings, false), loop::block(first), loop::block(later)));
}

void Expansion::finish(const Bindings& bindings, std::vector<Stmt>& body) {
  std::vector<Stmt> last, earlier;
  write_outputs(bindings, last);
  for (int64_t m = 0; m < rows(); ++m) {
    for (int64_t n = 0; n < vectors(); ++n) {
      const Cell cell{m, n};
      earlier.push_back(loop::store(totals_name_, waiting(bindings, cell),
                                    accumulator(definition_.accumulators[0].name, cell)));
    }
  }
  body.push_back(
      loop::if_branch(in_block(bindings, true), loop::block(last), loop::block(earlier)));
}

}  // namespace backcast
