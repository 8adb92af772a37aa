// Which operands are read in another order than the one they lie in.
#include <algorithm>
#include <bit>

#include "passes/lower/definition_cost.h"
#include "passes/schedule/affine.h"
#include "passes/schedule/chooser.h"

namespace backcast {

using loop::Axis;

/// The same element for the same sum.
bool Chooser::reads_again(const Access& a, const Access& b) {
  return a.buffer == b.buffer && a.in_reduction && b.in_reduction && loop::equal(a.flat, b.flat);
}

/// An operand that only accumulators read, at one place (maybe twice), affinely; a constant or,
/// when operands are rearranged at run time, one that no element of is needed twice.
bool Chooser::packable(const Access& access) const {
  bool at_run_time = mode_ == VectorMode::repack && !access.constant;
  if (!access.in_reduction || (!access.constant && !at_run_time)) return false;
  for (const Access& other : accesses_) {
    if (other.buffer == access.buffer && !reads_again(other, access)) return false;
  }
  if (reads_memory(access.flat)) return false;
  if (!origin(access)) return false;  // which part of it, a loop around the definition says
  for (const std::vector<Axis>* axes : {&definition_.axes, &definition_.reduce_axes}) {
    for (const Axis& axis : *axes) {
      if (!coefficient(access.flat, axis.name)) return false;
      if (mentions(access.flat, axis.name) && !static_extent(axis)) return false;
    }
  }
  for (const Axis& axis : definition_.reduce_axes) {
    if (!static_extent(axis)) return false;
  }
  return !at_run_time || !repeats(access);
}

/// The element that the first sum reads first; none where loops around the definition decide that.
std::optional<int64_t> Chooser::origin(const Access& access) const {
  std::map<std::string, int64_t> zeros;
  for (const Axis& axis : definition_.axes) zeros[axis.name] = 0;
  for (const Axis& axis : definition_.reduce_axes) zeros[axis.name] = 0;
  return evaluate(access.flat, zeros);
}

/// Packing would hold elements more than once, or what only a condition keeps from being read
/// outside of the operand.
bool Chooser::repeats(const Access& access) const {
  int64_t elements = 1, lowest = 0, highest = 0;
  for (const std::vector<Axis>* axes : {&definition_.axes, &definition_.reduce_axes}) {
    for (const Axis& axis : *axes) {
      if (!mentions(access.flat, axis.name)) continue;
      elements *= extent(axis.name);
      const int64_t reach = *coefficient(access.flat, axis.name) * (extent(axis.name) - 1);
      (reach < 0 ? lowest : highest) += reach;
    }
  }
  const int64_t first = *origin(access);
  Dim size = TensorType{ElementType::f32, kernel_.find(access.buffer)->shape}.element_count();
  if (!size.is_constant() || elements > size.constant()) return true;
  return first + lowest < 0 || first + highest >= size.constant();
}

/// The reduction axes as the operand is written: moving it is then moving blocks.
std::vector<Axis> Chooser::in_memory_order(const Access& a) const {
  std::vector<Axis> axes = reduce_axes();
  std::stable_sort(axes.begin(), axes.end(), [&](const Axis& x, const Axis& y) {
    return std::abs(*coefficient(a.flat, x.name)) > std::abs(*coefficient(a.flat, y.name));
  });
  return axes;
}

/// Elements of the reduction that lie one behind another.
int64_t Chooser::contiguous_run(const Access& a) const {
  int64_t run = 1;
  std::vector<Axis> axes = in_memory_order(a);
  for (size_t i = axes.size(); i-- > 0;) {
    if (std::abs(*coefficient(a.flat, axes[i].name)) != run) break;
    run *= extent(axes[i].name);
  }
  return run;
}

/// Whether steps of the sum read the same element.
bool Chooser::is_shared(const Access& a) const {
  return std::any_of(
      definition_.reduce_axes.begin(), definition_.reduce_axes.end(),
      [&](const Axis& axis) { return extent(axis.name) > 1 && !mentions(a.flat, axis.name); });
}

/// No element would be packed twice, nor what is a vector already for all steps that share it.
bool Chooser::packs(const Access& a) const {
  if (!a.packable || !mentions(a.flat, schedule_.vector_axis)) return false;
  if (!schedule_.tile_axis.empty() && mentions(a.flat, schedule_.tile_axis)) return false;
  return !is_shared(a) || (a.constant && coefficient(a.flat, schedule_.vector_axis) != 1);
}

void Chooser::choose_packing() {
  if (schedule_.vector_axis.empty()) return;
  for (const Access& a : accesses_) {
    if (!packs(a)) continue;
    // What is contiguous already is read where it lies, unless that is in many places.
    if (!a.constant && coefficient(a.flat, schedule_.vector_axis) == 1 && !has_far_rows(a)) {
      continue;
    }
    Packing packing;
    packing.parameter = a.buffer;
    packing.at_run_time = !a.constant;
    for (const Axis& axis : definition_.axes) {
      if (axis.name == schedule_.vector_axis || !mentions(a.flat, axis.name)) continue;
      packing.outer.push_back(axis.name);
      packing.outer_extents.push_back(extent(axis.name));
    }
    packing.is_shared = is_shared(a);
    for (const Axis& axis : a.constant ? reduce_axes() : in_memory_order(a)) {
      if (packing.is_shared && !mentions(a.flat, axis.name)) continue;
      packing.reduce.push_back(axis.name);
      packing.reduce_extents.push_back(extent(axis.name));
      packing.reversed.push_back(!a.constant && *coefficient(a.flat, axis.name) < 0);
    }
    schedule_.packed[a.buffer] = packing;
  }
}

/// Whether the last register of a row may reach beyond the axis' end: nothing is read there but
/// constants that are packed with zeros. A narrower register takes as many instructions; but a row
/// alone waits for constants that come from memory, and these are no longer than they must be.
bool Chooser::may_spare_lanes() const {
  const int64_t total = extent(schedule_.vector_axis), rest = total % lanes_;
  if (!is_reduction_ || general_ || lanes_ == 1 || rest == 0) return false;
  if (total < lanes_ && std::has_single_bit(static_cast<uint64_t>(rest))) return false;
  const bool alone = schedule_.tile_axis.empty() && target_.l2_bytes > 0;
  return std::all_of(accesses_.begin(), accesses_.end(), [&](const Access& a) {
    if (!a.in_reduction || !mentions(a.flat, schedule_.vector_axis)) return true;
    const int64_t bytes = static_bytes(*kernel_.find(a.buffer)).value_or(0);
    return a.constant && packs(a) && !(alone && bytes > target_.l2_bytes);
  });
}

}  // namespace backcast
