// See nonzero_steps.h.
#include "passes/schedule/nonzero_steps.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "ir/loop/visit.h"
#include "passes/lower/definition_cost.h"
#include "passes/schedule/affine.h"
#include "passes/schedule/expansion.h"

namespace backcast {

using loop::Axis;
using loop::Definition;
using loop::Expr;
using loop::ExprKind;
using loop::Scalar;
using loop::Stmt;

namespace {

/// The two accesses that a sum multiplies; nothing where it does anything else.
std::optional<std::pair<Expr, Expr>> factors_of(const Definition& definition) {
  if (definition.accumulators.size() != 1) return std::nullopt;
  const loop::Accumulator& acc = definition.accumulators[0];
  const Expr& value = acc.value;
  const bool is_product = value->kind == ExprKind::binary && value->op == loop::Op::mul &&
                          value->args[0]->kind == ExprKind::access &&
                          value->args[1]->kind == ExprKind::access;
  if (acc.combine != loop::Combine::sum || !is_product) return std::nullopt;
  if (!loop::is_float(acc.type.scalar)) return std::nullopt;
  return std::pair(value->args[0], value->args[1]);
}

/// How far apart an operand's steps are, taken in the order of `axes`; nothing where they are not
/// equally far apart.
std::optional<int64_t> pitch(const Expr& flat, const std::vector<Axis>& axes) {
  if (axes.empty()) return std::nullopt;
  const std::optional<int64_t> step = coefficient(flat, axes.back().name);
  int64_t run = 1;
  for (size_t i = axes.size(); i-- > 0 && step; run *= *static_extent(axes[i])) {
    if (coefficient(flat, axes[i].name) != *step * run) return std::nullopt;
  }
  return step;
}

/// The reduction axes in the order in which they run through the factor without a gap; empty
/// where there is none, or the factor depends on anything else.
std::vector<Axis> in_order(const Definition& definition, const Expr& flat) {
  for (const Axis& axis : definition.axes) {
    if (mentions(flat, axis.name)) return {};
  }
  std::vector<Axis> axes = definition.reduce_axes;
  for (const Axis& axis : axes) {
    if (!static_extent(axis) || !coefficient(flat, axis.name)) return {};
  }
  std::stable_sort(axes.begin(), axes.end(), [&](const Axis& a, const Axis& b) {
    return *coefficient(flat, a.name) > *coefficient(flat, b.name);
  });
  return pitch(flat, axes) == 1 ? axes : std::vector<Axis>();
}

/// The order of a packed operand's steps becomes that of `axes`, if it holds just these.
bool reorder(Packing& packing, const std::vector<Axis>& axes) {
  if (packing.at_run_time || packing.reduce.size() != axes.size()) return false;
  if (std::count(packing.reversed.begin(), packing.reversed.end(), true) > 0) return false;
  for (size_t i = 0; i < axes.size(); ++i) {
    packing.reduce[i] = axes[i].name;
    packing.reduce_extents[i] = *static_extent(axes[i]);
  }
  return true;
}

/// Whether leaving out every other step gains more than its list costs, in cycles per step. Without
/// vectors a product is a load, a multiplication and an addition; with them, weights are waited
/// for.
bool pays(const Definition& definition, const NestSchedule& schedule, int64_t steps,
          int64_t program_bytes, const TargetInfo& target) {
  // Times the second cache: what a third one holds for sure. From memory, rows come no faster when
  // every other one is left out.
  constexpr int64_t kHeld = 16;
  if (target.l2_bytes > 0 && program_bytes > kHeld * target.l2_bytes) return false;
  double results = 1, blocks = 0;
  for (const Axis& axis : definition.axes) {
    results *= static_cast<double>(static_extent(axis).value_or(0));
  }
  for (const VectorSegment& segment : schedule.vector_segments) {
    blocks += static_cast<double>(segment.count);
  }
  const Scalar scalar = definition.accumulators[0].type.scalar;
  if (target.vector_bits == 0) {
    const bool soft = scalar == Scalar::f64 ? !target.has_f64 : !target.has_f32;
    const double product = soft ? 60 : 3, listing = soft ? 30 : 9;
    constexpr double kEntry = 6;
    return results * product / 2 > listing + blocks * kEntry / 2;
  }
  // Bytes that arrive in a cycle, from the first cache and from behind it.
  const double near = 64, far = target.vector_bits > 256 && !target.halves_vectors ? 48 : 32;
  constexpr double kListing = 3, kEntry = 2, kMispredicted = 16;
  const double each = static_cast<double>(byte_size(loop::element_of(scalar)));
  const double arriving = results * each / (program_bytes > target.l1_bytes ? far : near);
  const double listing = kListing + kMispredicted * blocks / static_cast<double>(steps);
  return arriving / 2 > listing + blocks * kEntry / 2;
}

Scalar smallest_holding(int64_t count) {
  if (count <= std::numeric_limits<uint8_t>::max()) return Scalar::u8;
  return count <= std::numeric_limits<uint16_t>::max() ? Scalar::u16 : Scalar::i32;
}

}  // namespace

std::optional<NonzeroSteps> choose_nonzero_steps(
    const Definition& definition, const loop::Kernel& kernel, int64_t program_bytes,
    const TargetInfo& target, const std::function<bool(const std::string&)>& is_rectified,
    const std::function<bool(const std::string&)>& is_weight, NestSchedule& schedule) {
  auto factors = factors_of(definition);
  if (!factors || schedule.vector_axis.empty() || !schedule.lane_axis.empty() ||
      !schedule.block_axes.empty() || !schedule.tile_axis.empty() || schedule.jam > 1) {
    return std::nullopt;
  }
  if (!is_rectified(factors->first->name)) std::swap(factors->first, factors->second);
  const auto& [factor, weight] = *factors;
  if (!is_rectified(factor->name)) return std::nullopt;
  const auto flat_of = [&](const Expr& access) {
    return loop::flat_index(kernel.find(access->name)->shape, access->args);
  };
  const Expr flat = flat_of(factor);
  const std::vector<Axis> axes = in_order(definition, flat);
  if (axes.empty()) return std::nullopt;
  std::map<std::string, Packing> packed = schedule.packed;
  const auto packing = packed.find(weight->name);
  const bool fits = packing == packed.end() ? pitch(flat_of(weight), axes).has_value()
                                            : reorder(packing->second, axes);
  if (!fits || packed.count(factor->name)) return std::nullopt;
  NonzeroSteps steps{.factor = factor->name, .first = flat, .count = 1};
  for (const Axis& axis : axes) {
    steps.first = loop::substitute(steps.first, {{axis.name, Expr(0)}});
    steps.count *= *static_extent(axis);
  }
  if (steps.count > std::numeric_limits<int32_t>::max() ||
      !pays(definition, schedule, steps.count, program_bytes, target) || !is_weight(weight->name)) {
    return std::nullopt;
  }
  steps.entry = smallest_holding(steps.count);
  schedule.packed = std::move(packed);
  schedule.reduce_order.clear();
  for (const Axis& axis : axes) schedule.reduce_order.push_back(axis.name);
  schedule.unrolled.clear();
  schedule.reduce_unroll = schedule.chains = 1;
  return steps;
}

Stmt list_nonzero(const NonzeroSteps& steps, Scalar factor, const std::string& list) {
  const loop::Type index{}, entry{steps.entry, 1}, type{factor, 1};
  const Expr step = loop::var("step");
  const Expr listed = loop::load(index, "listed", Expr(0));
  const Expr is_zero =
      loop::binary(loop::Op::eq, loop::load(type, steps.factor, steps.first + step),
                   loop::float_constant(type, 0));
  return loop::block(
      {loop::alloc("listed", index, Expr(1), loop::Memory::registers),
       loop::store("listed", Expr(0), Expr(0)),
       loop::for_loop("step", Expr(0), Expr(steps.count),
                      loop::block({loop::store(list, listed + Expr(1), loop::cast(entry, step)),
                                   loop::store("listed", Expr(0),
                                               listed + loop::select(is_zero, Expr(0), Expr(1)))})),
       loop::store(list, Expr(0), loop::cast(entry, listed))});
}

/// The steps that a list names, in the place of all loops of the reduction. As the axes run through
/// what is read without a gap, the last of them alone can count.
Stmt Expansion::listed_steps(const Bindings& bindings) {
  const auto entry = [&](const Expr& at) {
    const loop::Type stored{kernel_.find(schedule_.listed)->element, 1};
    return loop::cast({}, loop::load(stored, schedule_.listed, at));
  };
  const std::string count = fresh("count"), variable = fresh("entry"), step = fresh("step");
  Bindings reduce;
  for (const Axis& axis : reduce_axes_) reduce[axis.name] = Expr(0);
  reduce[reduce_axes_.back().name] = loop::var(step);
  const Stmt body = loop::block(
      {loop::let(step, entry(loop::var(variable) + Expr(1))), updates(bindings, reduce)});
  return loop::block({loop::let(count, entry(Expr(0))),
                      loop::for_loop(variable, Expr(0), loop::var(count), body)});
}

}  // namespace backcast
