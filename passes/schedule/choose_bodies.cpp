// How much a body executes: what is behind a tile's sums, and a step of one. Of microcontrollers,
// whose flash holds the code, bodies that execute much are short.
#include <algorithm>
#include <array>

#include "ir/loop/visit.h"
#include "passes/lower/definition_cost.h"
#include "passes/schedule/affine.h"
#include "passes/schedule/chooser.h"

namespace backcast {

using loop::Axis;
using loop::Expr;

namespace {

// Operations of an epilogue that stands behind every sum of a microcontroller's tile.
constexpr int64_t kShortEpilogue = 8;
// Steps of a sum beside which storing and loading it is much.
constexpr double kShortSum = 4;
// Of a math function on a scalar core.
constexpr int64_t kMathInstructions = 40;

}  // namespace

/// A math function in the epilogue of a vector tile has more constants than there are registers
/// beside the tile's. On a microcontroller a store and a load for each sum are little beside any
/// long epilogue.
bool Chooser::needs_rolled_epilogue() const {
  const bool small = target_.is_microcontroller();
  if (!small && (lanes_ == 1 || schedule_.tile_axis.empty() || schedule_.jam > 1)) return false;
  const auto is_decided = [&](const Expr& e) {
    if (e->kind != loop::ExprKind::if_then_else) return false;
    return std::ranges::any_of(
        std::array{schedule_.tile_axis, schedule_.jam_axis, schedule_.outer_jam_axis},
        [&](const std::string& axis) { return !axis.empty() && mentions(e->args[0], axis); });
  };
  int64_t operations = 0;
  for (const loop::DefinitionOutput& output : definition_.outputs) {
    bool decided = false;
    loop::visit(output.value, [&](const Expr& e) { decided = decided || is_decided(e); });
    if (decided) return false;
    operations += cost(output.value).total();
  }
  return small ? reduce_points() >= kShortSum && operations > kShortEpilogue : math_calls() > 0;
}

/// What a microcontroller executes for a step of a sum, where a multiply-accumulate whose operands
/// others read as well counts as one; 1 elsewhere.
int64_t Chooser::step_work() const {
  if (!target_.is_microcontroller() || adds_products()) return 1;
  int64_t work = 0;
  for (const loop::Accumulator& acc : definition_.accumulators) {
    // What guards a step is decided outside of it.
    const bool guarded = acc.value->kind == loop::ExprKind::if_then_else;
    const Expr& value = guarded ? acc.value->args[1] : acc.value;
    work += cost(value).total() + 1;
    loop::visit(value, [&](const Expr& e) {
      if (e->kind == loop::ExprKind::call) work += kMathInstructions - kMathFunctionCost;
    });
  }
  work += std::ranges::count_if(accesses_, [&](const Access& a) {
    return a.in_reduction && std::ranges::all_of(definition_.axes, [&](const Axis& axis) {
             return static_extent(axis) == 1 || mentions(a.flat, axis.name);
           });
  });
  return std::max<int64_t>((work - 1) / 2, 1);
}

}  // namespace backcast
