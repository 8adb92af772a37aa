// See interpolation.h. Channels lie side by side, so that a place is computed once and what is read
// there is contiguous; neighbours are read from the map moved by so many rows, at the same numbers.
#include "frontend/rules/interpolation.h"

#include <algorithm>

namespace backcast {
namespace {

/// 1 - |x| within one element. The derivative is that from the right: offsets start at zero, where
/// a subgradient of 0 would never let them learn.
ValueId hat(Emitter& e, ValueId x) {
  const ValueId zero = e.like(x, 0), one = e.like(x, 1);
  const ValueId slope = e.select(e.compare(Comparison::lt, x, 0.0), e.add(one, x), e.sub(one, x));
  const ValueId within =
      e.binary(ops::bit_and, e.compare(Comparison::ge, x, -1.0), e.compare(Comparison::lt, x, 1.0));
  return e.select(within, slope, zero);
}

ValueId combined(Emitter& e, ValueId rows, const Dim& count, ValueId first,
                 const std::vector<TapAxis>& axes, size_t axis, const Dim& moved,
                 const OpDef& combine) {
  if (axis == axes.size()) {
    return e.take(e.slice_axis(rows, 0, moved, moved + count), first, 0);
  }
  ValueId result;
  for (size_t tap = 0; tap < axes[axis].weights.size(); ++tap) {
    const Dim behind = moved + static_cast<int64_t>(tap) * axes[axis].rows;
    const ValueId part = combined(e, rows, count, first, axes, axis + 1, behind, combine);
    const ValueId weight = e.cast(axes[axis].weights[tap], e.element(part));
    const ValueId term = e.mul(part, e.broadcast_in(weight, e.shape(part), axes[axis].dims));
    result = result.valid() ? e.binary(combine, result, term) : term;
  }
  return result;
}

}  // namespace

LinearTaps linear_taps(Emitter& e, ValueId position, int64_t extent) {
  const double last = static_cast<double>(std::max<int64_t>(extent - 2, 0));
  LinearTaps taps{e.clamp(e.unary(ops::floor, position), 0, last), {}};
  const ValueId fraction = e.sub(position, taps.first);
  taps.weights.push_back(hat(e, fraction));
  if (extent > 1) taps.weights.push_back(hat(e, e.sub(fraction, 1.0)));
  return taps;
}

ValueId channel_rows(const NodeContext& n, ValueId x, int64_t groups) {
  Emitter e = n.e;
  const int64_t rank = e.rank(x);
  if (e.type(x).element_count().range(n.ranges()).max > INT32_MAX) {
    n.fail(fmt::format("a map of {} has more elements than places are numbered with (31 bits)",
                       to_string(e.shape(x))));
  }
  Ints order = {0};
  for (int64_t d = 2; d < rank; ++d) order.push_back(d);
  order.push_back(1);
  const Dim channels = e.extent(x, 1);
  const Dim rows = e.extent(x, 0) * product(e.shape(x), 2, rank) * groups;
  return e.reshape(e.transpose(x, order), {rows, Dim::floor_div(channels, groups)});
}

ValueId interpolated(Emitter& e, ValueId rows, ValueId first, const std::vector<TapAxis>& axes,
                     const OpDef& combine) {
  Dim count = e.extent(rows, 0);
  for (const TapAxis& axis : axes) {
    count = count - (static_cast<int64_t>(axis.weights.size()) - 1) * axis.rows;
  }
  return combined(e, rows, count, first, axes, 0, Dim(0), combine);
}

int64_t fixed_extent(const NodeContext& n, const Dim& extent) {
  if (!extent.is_constant()) {
    n.fail(fmt::format("needs a known input size; bind {} with --dim", extent.to_string()));
  }
  if (extent.constant() < 1) n.fail("a spatial axis is empty");
  return extent.constant();
}

}  // namespace backcast
