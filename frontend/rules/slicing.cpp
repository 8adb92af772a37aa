// Slice, Pad and their relatives. Amounts that only run time knows become index arithmetic and a
// gather, sized by the declared output shape.
#include <algorithm>

#include "frontend/operators.h"
#include "frontend/rules/families.h"
#include "ir/graph/error.h"

namespace backcast {
namespace {

constexpr int64_t kFar = int64_t{1} << 60;  // beyond every extent, and safe to add to one

Dim near(const Dim& d) { return d.is_constant() ? Dim(std::clamp(d.constant(), -kFar, kFar)) : d; }

Dim smaller(const NodeContext& n, const Dim& a, const Dim& b) {
  const DimRange difference = (a - b).range(n.ranges());
  return difference.max <= 0 ? a : difference.min >= 0 ? b : Dim::min(a, b);
}

Dim larger(const NodeContext& n, const Dim& a, const Dim& b) {
  const DimRange difference = (a - b).range(n.ranges());
  return difference.min >= 0 ? a : difference.max <= 0 ? b : Dim::max(a, b);
}

/// A start or end counted from the front and clamped to [least, most].
Dim bounded(const NodeContext& n, const Dim& given, const Dim& extent, const Dim& least,
            const Dim& most) {
  Dim at = near(given);
  const DimRange range = at.range(n.ranges());
  if (range.max < 0) {
    at = at + extent;
  } else if (range.min < 0) {
    n.fail(fmt::format("{} may be negative or not, depending on a dimension; bind it with --dim",
                       given.to_string()));
  }
  return smaller(n, larger(n, at, least), most);
}

ValueId slice_axis(NodeContext& n, ValueId x, int64_t axis, const Dim& start, const Dim& end,
                   int64_t step) {
  const Dim extent = n.e.extent(x, axis);
  if (step == 0) n.fail("a step is 0");
  if (step > 0) {
    const Dim from = bounded(n, start, extent, 0, extent);
    const Dim to = larger(n, from, bounded(n, end, extent, 0, extent));
    return n.e.slice_axis(x, axis, from, to, std::min(step, kFar));
  }
  const int64_t stride = -std::max(step, -kFar);
  const Dim from = bounded(n, start, extent, -1, extent - 1);
  const Dim to = bounded(n, end, extent, -1, extent - 1);
  const Dim count = Dim::ceil_div(larger(n, from - to, 0), stride);
  if (count == Dim(0)) return n.e.slice_axis(x, axis, 0, 0);
  const Dim lowest = stride == 1 ? to + 1 : from - (count - 1) * stride;
  return n.e.reverse(n.e.slice_axis(x, axis, lowest, from + 1, stride), {axis});
}

/// Element i of a vector of the node's run-time integers, as an i64 scalar.
ValueId element_of(NodeContext& n, ValueId vector, int64_t i) {
  const ValueId wide = n.e.cast(vector, ElementType::i64);
  return n.e.reshape(n.e.slice_axis(wide, 0, i, i + 1), {});
}

/// For each of `rank` axes the entry of `values` that belongs to it, or `fallback`; as i64[rank].
ValueId spread_over_axes(NodeContext& n, ValueId values, ValueId axes, int64_t rank,
                         double fallback) {
  if (n.e.rank(values) != 1 || n.e.shape(axes) != n.e.shape(values)) {
    n.fail("the amounts and the axes have to be vectors of equal length");
  }
  const ValueId wrapped = n.e.wrap_negative(n.e.cast(axes, ElementType::i64), rank);
  const Shape matrix = {n.e.extent(axes, 0), Dim(rank)};
  const ValueId column = n.e.iota(ElementType::i64, matrix, 1);
  const ValueId hit = n.e.compare(Comparison::eq, column, n.e.broadcast_in(wrapped, matrix, {0}));
  const ValueId spread = n.e.broadcast_in(n.e.cast(values, ElementType::i64), matrix, {0});
  const ValueId rest = n.e.filled({ElementType::i64, matrix}, fallback);
  const ValueId offset = n.e.sub(n.e.select(hit, spread, rest), rest);
  return n.e.add(n.e.reduce(Reduction::sum, offset, {0}), fallback);
}

/// Starts and steps in a tensor, extents of the result from its declaration.
ValueId slice_run_time(NodeContext& n, const Shape& to) {
  ValueId x = n.input(0);
  const int64_t rank = n.rank(0);
  if (static_cast<int64_t>(to.size()) != rank) n.fail("the declared output has another rank");
  if (n.rank(1) != 1) n.fail("starts have to be a vector");
  const ValueId axes = n.has(3) ? n.input(3) : n.e.iota(ElementType::i64, n.shape(1), 0);
  const ValueId starts = spread_over_axes(n, n.input(1), axes, rank, 0);
  ValueId steps = n.e.filled({ElementType::i64, {Dim(rank)}}, 1);
  if (n.has(4)) steps = spread_over_axes(n, n.input(4), axes, rank, 1);
  for (int64_t axis = 0; axis < rank; ++axis) {
    const ValueId size = n.e.dimension(n.e.extent(x, axis));
    const ValueId step = element_of(n, steps, axis);
    ValueId start = n.e.wrap_negative(element_of(n, starts, axis), n.e.extent(x, axis));
    const ValueId forward = n.e.compare(Comparison::gt, step, 0.0);
    // An axis that was not named starts at 0 with step 1; one that steps back starts inside.
    const ValueId most = n.e.select(forward, size, n.e.sub(size, 1.0));
    start = n.e.max(n.e.min(start, most), n.e.integer(0));
    const ValueId count = n.e.iota(ElementType::i64, {to[static_cast<size_t>(axis)]}, 0);
    x = n.e.take(x, n.e.add(n.e.mul(count, step), start), axis);
  }
  return x;
}

Dims as_dims(const Ints& ints) { return Dims(ints.begin(), ints.end()); }

void slice_known(NodeContext& n, const Dims& starts, const Dims& ends, Ints axes,
                 const Ints& steps) {
  if (ends.size() != starts.size() || axes.size() != starts.size() ||
      steps.size() != starts.size()) {
    n.fail("starts, ends, axes and steps have different lengths");
  }
  static_cast<void>(n.axes(axes, n.rank(0)));
  ValueId x = n.input(0);
  for (size_t i = 0; i < axes.size(); ++i) {
    x = slice_axis(n, x, n.axis(axes[i], n.rank(0)), starts[i], ends[i], steps[i]);
  }
  n.result(x);
}

void slice_attributes(NodeContext& n) {
  const Ints starts = n.attr_ints("starts").value_or(Ints());
  const Ints ends = n.attr_ints("ends").value_or(Ints());
  const Ints axes = n.attr_ints("axes").value_or(counting(static_cast<int64_t>(starts.size())));
  slice_known(n, as_dims(starts), as_dims(ends), axes, Ints(starts.size(), 1));
}

/// The value that holds the one element of `id`, behind operators that only shape or cast it.
ValueId element_source(NodeContext& n, ValueId id) {
  while (product(n.e.shape(id), 0, n.e.rank(id)) == Dim(1)) {
    const Node& node = n.e.builder().node(id);
    const bool passes = node.op == &ops::reshape || node.op == &ops::broadcast ||
                        (node.op == &ops::cast && !is_float(n.e.element(id)));
    if (!passes) break;
    id = node.operands[0];
  }
  return id;
}

/// The shape of a window x[i : i + c] of a fixed size c at a place that only run time knows, taken
/// to lie inside of x.
std::optional<Shape> window_shape(NodeContext& n) {
  if (n.has(4) || n.rank(1) != 1 || !(n.shape(1) == Shape{1}) || !(n.shape(2) == Shape{1})) {
    return std::nullopt;
  }
  const std::optional<Ints> axes = n.has(3) ? n.known_ints(3) : Ints{0};
  const ValueId start = element_source(n, n.input(1));
  const Node end = n.e.builder().node(element_source(n, n.input(2)));
  if (!axes || axes->size() != 1 || end.op != &ops::add) return std::nullopt;
  for (const size_t k : {size_t{0}, size_t{1}}) {
    const std::optional<Ints> size = n.known_ints_of(end.operands[1 - k]);
    const bool moves = element_source(n, end.operands[k]) == start;
    if (!moves || !size || size->size() != 1 || (*size)[0] < 1) continue;
    Shape shape = n.shape(0);
    shape[static_cast<size_t>(n.axis((*axes)[0], n.rank(0)))] = (*size)[0];
    return shape;
  }
  return std::nullopt;
}

void slice_inputs(NodeContext& n) {
  const std::optional<Dims> starts = n.known_dims(1), ends = n.known_dims(2);
  const bool known =
      starts && ends && (!n.has(3) || n.known_ints(3)) && (!n.has(4) || n.known_ints(4));
  std::optional<Shape> extents = n.declared(0);
  if (!known && !extents) extents = window_shape(n);
  if (!known && extents) return n.result(slice_run_time(n, *extents));
  const Dims from = n.dims(1);
  const Ints axes = n.has(3) ? n.ints(3) : counting(static_cast<int64_t>(from.size()));
  const Ints steps = n.has(4) ? n.ints(4) : Ints(from.size(), 1);
  slice_known(n, from, n.dims(2), axes, steps);
}

/// Where position i of a padded axis comes from, before clamping: i - low, folded back by mode.
ValueId source_index(NodeContext& n, const std::string& mode, ValueId low, const Dim& extent,
                     const Dim& padded) {
  ValueId index = n.e.sub(n.e.iota(ElementType::i64, {padded}, 0), low);
  const ValueId size = n.e.dimension(extent);
  if (mode == "wrap") index = n.e.binary(ops::mod, index, size);
  if (mode == "reflect" && !(extent == Dim(1))) {
    const ValueId period = n.e.mul(n.e.sub(size, 1.0), 2.0);
    index = n.e.binary(ops::mod, index, period);
    index = n.e.select(n.e.compare(Comparison::lt, index, size), index, n.e.sub(period, index));
  }
  return index;
}

ValueId pad_axis(NodeContext& n, ValueId x, int64_t axis, const std::string& mode, ValueId low,
                 const Dim& padded, ValueId value) {
  const Dim extent = n.e.extent(x, axis);
  const ValueId index = source_index(n, mode, low, extent, padded);
  const std::optional<Ints> known = n.known_ints_of(index);
  if (known && mode != "constant") {
    Ints clamped = *known;
    for (int64_t& i : clamped) i = std::clamp<int64_t>(i, 0, extent.constant() - 1);
    const ValueId places = n.e.constant(Literal::from_ints({padded.constant()}, clamped));
    return take_known(n, x, places, axis);
  }
  const ValueId y = n.e.take(x, index, axis);
  if (mode != "constant") return y;
  const ValueId valid = n.e.binary(ops::bit_and, n.e.compare(Comparison::ge, index, 0.0),
                                   n.e.compare(Comparison::lt, index, n.e.dimension(extent)));
  const Shape shape = n.e.shape(y);
  return n.e.select(n.e.broadcast_in(valid, shape, {axis}), y, value);
}

void pad_known(NodeContext& n, const Dims& pads, const Ints& axes, const std::string& mode,
               ValueId value) {
  const size_t rank = static_cast<size_t>(n.rank(0));
  if (pads.size() != 2 * axes.size()) {
    n.fail(fmt::format("{} pads are given for {} axes", pads.size(), axes.size()));
  }
  Dims low(rank, Dim(0)), high(rank, Dim(0));
  for (size_t i = 0; i < axes.size(); ++i) {
    const size_t axis = static_cast<size_t>(n.axis(axes[i], n.rank(0)));
    low[axis] = pads[i];
    high[axis] = pads[i + axes.size()];
  }
  ValueId x = n.input(0);
  if (mode == "constant") return n.result(n.e.pad(x, value, low, high));
  for (size_t i = 0; i < rank; ++i) {
    if (low[i] == Dim(0) && high[i] == Dim(0)) continue;
    const Dim extent = n.e.extent(x, static_cast<int64_t>(i));
    const Dim padded = extent + low[i] + high[i];
    if (extent == Dim(0)) n.fail("an empty axis cannot be padded from itself");
    if (padded.range(n.ranges()).min < 0) n.fail("the pads remove more than there is");
    x = pad_axis(n, x, static_cast<int64_t>(i), mode, n.e.dimension(low[i]), padded, value);
  }
  n.result(x);
}

std::string pad_mode(const NodeContext& n) {
  const std::string mode = n.attr_string("mode", "constant");
  if (mode != "constant" && mode != "reflect" && mode != "edge" && mode != "wrap") {
    n.fail(
        fmt::format("attribute \"mode\" is \"{}\"; constant, reflect, edge and wrap are "
                    "possible",
                    mode));
  }
  return mode;
}

void pad_attributes(NodeContext& n) {
  const Ints pads = n.attr_ints("pads").value_or(Ints());
  const ValueId value = n.e.scalar(n.element(0), n.attr_float("value", 0));
  pad_known(n, as_dims(pads), counting(n.rank(0)), pad_mode(n), value);
}

void pad_inputs(NodeContext& n) {
  const std::string mode = pad_mode(n);
  ValueId value = n.e.scalar(n.element(0), 0);
  if (n.has(2)) {
    if (!(n.type(2).element_count() == Dim(1))) n.fail("input 2, the value, has to be a scalar");
    value = n.e.reshape(n.input(2), {});
  }
  const bool known = n.known_dims(1) && (!n.has(3) || n.known_ints(3));
  const std::optional<Shape> declared = n.declared(0);
  if (known || !declared) {
    const Ints axes = n.has(3) ? n.ints(3) : counting(n.rank(0));
    return pad_known(n, n.dims(1), axes, mode, value);
  }
  if (static_cast<int64_t>(declared->size()) != n.rank(0) || n.rank(1) != 1) {
    n.fail("the declared output shape does not fit");
  }
  const Dim half = Dim::floor_div(n.shape(1)[0], 2);
  ValueId lows = n.e.slice_axis(n.input(1), 0, 0, half);
  if (n.has(3)) lows = spread_over_axes(n, lows, n.input(3), n.rank(0), 0);
  ValueId x = n.input(0);
  for (int64_t axis = 0; axis < n.rank(0); ++axis) {
    x = pad_axis(n, x, axis, mode, element_of(n, lows, axis),
                 (*declared)[static_cast<size_t>(axis)], value);
  }
  n.result(x);
}

/// Crops or pads around the centre; of an odd difference the smaller half comes first.
void center_crop_pad(NodeContext& n) {
  const Ints axes = n.attr_ints("axes").value_or(counting(n.rank(0)));
  std::optional<Dims> target = n.known_dims(1);
  const std::optional<Shape> declared = n.declared(0);
  if (!target && declared && static_cast<int64_t>(declared->size()) == n.rank(0)) {
    target.emplace();
    for (const int64_t a : axes) {
      target->push_back((*declared)[static_cast<size_t>(n.axis(a, n.rank(0)))]);
    }
  }
  if (!target) target = n.dims(1);
  if (target->size() != axes.size()) n.fail("the shape and the axes have different lengths");
  Dims low(static_cast<size_t>(n.rank(0)), Dim(0));
  Dims high = low;
  for (size_t i = 0; i < axes.size(); ++i) {
    const size_t axis = static_cast<size_t>(n.axis(axes[i], n.rank(0)));
    const Dim difference = (*target)[i] - n.shape(0)[axis];
    if (!difference.is_constant()) {
      n.fail(fmt::format("needs known extents; bind {} with --dim", difference.to_string()));
    }
    const int64_t d = difference.constant();
    low[axis] = d >= 0 ? d / 2 : -((-d) / 2);
    high[axis] = Dim(d) - low[axis];
  }
  n.result(n.e.pad(n.input(0), n.e.scalar(n.element(0), 0), low, high));
}

constexpr int64_t kNew = kNewestOpset;

const OperatorRule kRules[] = {
    {"Slice", 7, 9, 1, 1, slice_attributes, "starts:I ends:I axes:I"},
    {"Slice", 10, kNew, 3, 5, slice_inputs},
    {"Pad", 7, 10, 1, 1, pad_attributes, "mode:s pads:I value:f"},
    {"Pad", 11, 17, 2, 3, pad_inputs, "mode:s"},
    {"Pad", 18, kNew, 2, 4, pad_inputs, "mode:s"},
    {"CenterCropPad", 18, kNew, 2, 2, center_crop_pad, "axes:I"},
};

}  // namespace

std::span<const OperatorRule> slicing_rules() { return kRules; }

}  // namespace backcast
