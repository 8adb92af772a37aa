#include "passes/schedule/factor_sums.h"

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "passes/lower/definition_cost.h"
#include "passes/schedule/affine.h"

namespace backcast {
namespace {

using loop::Axis;
using loop::Expr;
using loop::ExprKind;

// Fewer steps do not pay for another multiplication and for emptying the registers.
constexpr int64_t kFewestSteps = 4;
// Registers beside those of sums: operands on their way.
constexpr int64_t kSpareRegisters = 6;

void collect_factors(const Expr& e, std::vector<Expr>& factors) {
  if (e->kind != ExprKind::binary || e->op != loop::Op::mul) {
    factors.push_back(e);
    return;
  }
  for (const Expr& arg : e->args) collect_factors(arg, factors);
}

Expr product_of(const std::vector<Expr>& factors) {
  Expr product = factors[0];
  for (size_t i = 1; i < factors.size(); ++i) product = product * factors[i];
  return product;
}

/// Plain tiles of sums of floats, without a condition.
bool is_plain(const loop::Definition& definition, const NestSchedule& schedule) {
  if (definition.accumulators.size() != 1) return false;
  const loop::Accumulator& acc = definition.accumulators[0];
  std::vector<Expr> guard;
  without_guard(acc, guard);
  return acc.combine == loop::Combine::sum && loop::is_float(acc.type.scalar) && guard.empty() &&
         schedule.lane_axis.empty() && schedule.jam_axis.empty() && schedule.taken.axes.empty() &&
         schedule.split_axis.empty() && schedule.block_axes.empty() && schedule.unpacked.empty();
}

/// The most sums of a tile that registers hold two of each for.
int64_t most_sums(const TargetInfo& target, const NestSchedule& schedule) {
  const bool wide = std::ranges::any_of(schedule.vector_segments,
                                        [](const VectorSegment& s) { return s.lanes > 1; });
  return ((wide ? target.vector_registers : target.float_registers) - kSpareRegisters) / 2;
}

/// The sums of the smallest tile: what is left of rows and columns.
int64_t fewest_sums(const NestSchedule& schedule) {
  int64_t rows = schedule.largest_tile(),
          vectors = schedule.vector_segments.empty() ? 1 : INT64_MAX;
  for (const TileSegment& segment : schedule.tile_segments) rows = std::min(rows, segment.size);
  for (const VectorSegment& segment : schedule.vector_segments) {
    vectors = std::min<int64_t>(vectors, segment.vectors);
  }
  return rows * vectors * schedule.chains;
}

}  // namespace

void factor_sums(const loop::Definition& definition, const TargetInfo& target,
                 NestSchedule& schedule) {
  const int64_t most = most_sums(target, schedule);
  if (!is_plain(definition, schedule) || fewest_sums(schedule) > most) return;
  std::vector<Expr> factors;
  collect_factors(definition.accumulators[0].value, factors);
  const std::vector<Axis> loops = reduction_loops(definition, schedule);
  // Those that the loops from a depth inwards share go to the front.
  const auto share = [&](size_t depth) {
    const auto differs = [&](const Expr& factor) {
      return !reads_memory(factor) ||
             std::any_of(loops.begin() + static_cast<std::ptrdiff_t>(depth), loops.end(),
                         [&](const Axis& axis) { return mentions(factor, axis.name); });
    };
    return std::stable_partition(factors.begin(), factors.end(), std::not_fn(differs));
  };
  int64_t steps = 1;
  size_t depth = loops.size();
  // A sum of no steps is zero, whatever the factor: one over another such sum is infinite.
  while (depth > 0 && static_extent(loops[depth - 1]) && share(depth - 1) != factors.begin()) {
    steps *= *static_extent(loops[--depth]);
  }
  const auto others = share(depth);
  if (steps < kFewestSteps || others == factors.end()) return;
  schedule.factor = product_of({factors.begin(), others});
  schedule.factored = product_of({others, factors.end()});
  schedule.factor_depth = depth;
  schedule.factored_sums = most;
}

}  // namespace backcast
