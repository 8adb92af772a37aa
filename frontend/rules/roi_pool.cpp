// MaxRoiPool. Bins are as large as data makes them, so how many elements are looked at is known at
// run time alone: scans find where the largest ones are, region by region.
#include <algorithm>

#include "frontend/operators.h"
#include "frontend/rules/families.h"
#include "frontend/rules/interpolation.h"
#include "ir/graph/error.h"

namespace backcast {
namespace {

/// Half away from zero, as C's round() does and round_even does not.
ValueId rounded(Emitter& e, ValueId x) {
  const ValueId size = e.unary(ops::abs, x), whole = e.unary(ops::floor, size);
  const ValueId up = e.compare(Comparison::ge, e.sub(size, whole), 0.5);
  const ValueId result = e.select(up, e.add(whole, 1.0), whole);
  return e.select(e.compare(Comparison::lt, x, 0.0), e.unary(ops::neg, result), result);
}

/// Where bins begin and end along an axis of the map, i32[regions, bins] or i32[bins].
struct Bounds {
  ValueId begin, end;
};

/// Those of regions [image, x1, y1, x2, y2] along the axis of their column `edge`, as ONNX Runtime
/// has them, since ONNX names none: both edges belong to a region, and neighbours share an element
/// where they do not meet between two.
Bounds bounds_of(NodeContext& n, int64_t edge, int64_t extent, int64_t bins) {
  Emitter& e = n.e;
  const ElementType type = stash_of(n.element(0));
  const Shape shape = {n.shape(1)[0], Dim(bins)};
  const auto coordinate = [&](int64_t column) {
    const ValueId given = e.cast(e.slice_axis(n.input(1), 1, column, column + 1), type);
    return rounded(e, e.mul(given, n.attr_float("spatial_scale", 1)));
  };
  const ValueId start = coordinate(edge);
  const ValueId length = e.add(e.sub(coordinate(edge + 2), start), 1.0);
  const ValueId bin = e.div(e.max(length, e.like(length, 1)), static_cast<double>(bins));
  const ValueId number = e.iota(type, shape, 1);
  const auto on_map = [&](ValueId within) {
    const ValueId at = e.clamp(e.add(within, start), 0, static_cast<double>(extent));
    return e.cast(at, ElementType::i32);
  };
  return {on_map(e.unary(ops::floor, e.mul(number, bin))),
          on_map(e.unary(ops::ceil, e.mul(e.add(number, 1.0), bin)))};
}

/// One region in the body of a scan: number of its image, its bins, and the map's channel_rows().
struct Region {
  Emitter& e;
  int64_t height, width;
  ValueId image;
  Bounds y, x;
  ValueId rows;

  Region(Emitter& e, int64_t height, int64_t width, const ValueId* parts)
      : e(e),
        height(height),
        width(width),
        image(parts[0]),
        y{parts[1], parts[2]},
        x{parts[3], parts[4]},
        rows(parts[5]) {}

  /// Of every bin the row that is `down` and `right` of its first, or as far as the bin goes.
  ValueId row(ValueId down, ValueId right) const {
    const auto along = [&](const Bounds& of, ValueId steps) {
      return e.min(e.add(of.begin, steps), e.sub(of.end, 1.0));
    };
    const ValueId line = e.add(e.mul(image, static_cast<double>(height)), along(y, down));
    const ValueId column = along(x, right);
    const Shape bins = {e.extent(line, 0), e.extent(column, 0)};
    const ValueId first = e.broadcast_in(e.mul(line, static_cast<double>(width)), bins, {0});
    return e.add(first, e.broadcast_in(column, bins, {1}));
  }

  ValueId longest(const Bounds& of) const {
    return e.reduce(Reduction::max, e.sub(of.end, of.begin), {0});
  }

  ValueId empty(const Bounds& of, const Shape& shape, int64_t axis) const {
    return e.broadcast_in(e.compare(Comparison::ge, of.begin, of.end), shape, {axis});
  }
};

/// MaxRoiPool-1, 22. A region takes as many trips as its largest bin has elements, and each looks
/// at one element of every bin. What is carried out of them is a place: its gradient is a scatter,
/// and nothing of the trips is kept for it.
void max_roi_pool(NodeContext& n) {
  Emitter& e = n.e;
  if (n.rank(0) != 4 || n.rank(1) != 2 || !(n.shape(1)[1] == Dim(5))) {
    n.fail(fmt::format("needs an input [N, C, H, W] and regions [regions, 5], and has {} and {}",
                       to_string(n.shape(0)), to_string(n.shape(1))));
  }
  const Ints bins = n.attr_ints("pooled_shape").value_or(Ints());
  const auto good = [](int64_t count) { return count >= 1 && count <= INT16_MAX; };
  if (bins.size() != 2 || !good(bins[0]) || !good(bins[1])) {
    n.fail("attribute \"pooled_shape\" needs two positive values");
  }
  const Dim regions = n.shape(1)[0];
  const int64_t height = fixed_extent(n, n.shape(0)[2]), width = fixed_extent(n, n.shape(0)[3]);
  const Bounds y = bounds_of(n, 2, height, bins[0]), x = bounds_of(n, 1, width, bins[1]);
  const ValueId image = e.cast(e.slice_axis(n.input(1), 1, 0, 1), ElementType::i32);
  const ValueId rows = channel_rows(n, n.input(0));
  const TensorType scalar{ElementType::i32, {}};
  const TensorType down{ElementType::i32, {Dim(bins[0])}}, right{ElementType::i32, {Dim(bins[1])}};
  const TensorType values{n.element(0), {down.shape[0], right.shape[0], n.shape(0)[1]}};
  const TensorType places{ElementType::i32, values.shape};
  const std::vector<Type> region = {scalar, down, down, right, right, e.type(rows)};

  std::vector<Type> searched = {scalar, values, places, scalar};
  searched.insert(searched.end(), region.begin(), region.end());
  ScanAttrs search{.carries = 3, .length = Dim(height * width)};
  search.body = n.function(n.loc().node, searched, [&](Emitter& b, const std::vector<ValueId>& v) {
    const Region r(b, height, width, &v[4]);
    const ValueId trip = v[0], best = v[1], place = v[2], across = v[3];
    const ValueId line = b.div(trip, across);
    const ValueId row = r.row(line, b.sub(trip, b.mul(line, across)));
    const ValueId value = b.take(r.rows, row, 0);
    const ValueId better = b.compare(Comparison::gt, value, best);
    const ValueId here = b.broadcast_in(row, b.shape(value), {0, 1});
    return b.emit(ops::tuple,
                  {b.add(trip, 1.0), b.select(better, value, best), b.select(better, here, place)});
  });

  ScanAttrs attrs{.xs = 5, .length = regions};
  attrs.body = n.function(n.loc().node, region, [&](Emitter& b, const std::vector<ValueId>& v) {
    const Region r(b, height, width, v.data());
    const ValueId none = b.scalar(ElementType::i32, 0), across = r.longest(r.x);
    const ValueId row = r.row(none, none), value = b.take(r.rows, row, 0);
    const Shape shape = b.shape(value);
    const ValueId trips = b.cast(b.mul(r.longest(r.y), across), ElementType::i64);
    std::vector<ValueId> operands = {trips, none, value, b.broadcast_in(row, shape, {0, 1}),
                                     across};
    operands.insert(operands.end(), v.begin(), v.end());
    const ValueId place = b.get(b.emit(ops::scan, operands, search), 2);
    const ValueId channels = b.cast(b.dimension(shape[2]), ElementType::i32);
    const ValueId element = b.add(b.mul(place, channels), b.iota(ElementType::i32, shape, 2));
    const ValueId flat = b.reshape(r.rows, {b.type(r.rows).element_count()});
    const ValueId found = b.take(flat, element, 0);
    const ValueId empty = b.binary(ops::bit_or, r.empty(r.y, shape, 0), r.empty(r.x, shape, 1));
    return b.emit(ops::tuple, {b.select(empty, b.like(found, 0), found)});
  });
  const std::vector<ValueId> operands = {
      e.dimension(regions), e.reshape(image, {regions}), y.begin, y.end, x.begin, x.end, rows};
  const ValueId pooled = e.get(e.emit(ops::scan, operands, attrs), 0);
  n.result(e.transpose(pooled, {0, 3, 1, 2}));
}

const OperatorRule kRules[] = {
    {"MaxRoiPool", kOldestOpset, kNewestOpset, 2, 2, max_roi_pool,
     "pooled_shape:I spatial_scale:f"},
};

}  // namespace

std::span<const OperatorRule> roi_pool_rules() { return kRules; }

}  // namespace backcast
