// Resize and Upsample: one axis after the other, each output element a weighted sum of a few
// neighbours. Positions and weights are index arithmetic that folds when the scales are constant.
#include <algorithm>
#include <cmath>

#include "frontend/operators.h"
#include "frontend/rules/families.h"
#include "ir/graph/error.h"

namespace backcast {
namespace {

constexpr ElementType kF64 = ElementType::f64;

struct ResizePlan {
  std::string mode, transform, nearest;
  bool antialias = false, exclude_outside = false;
  double cubic_a = -0.75, extrapolation = 0;
};

struct AxisPlan {
  int64_t axis = 0;
  Dim input, output;
  ValueId scale;               // f64 scalar
  ValueId roi_start, roi_end;  // f64 scalars; tf_crop_and_resize only
};

ValueId number(NodeContext& n, double value) { return n.e.scalar(kF64, value); }

ValueId number(NodeContext& n, ElementType type, const Dim& extent) {
  if (!extent.is_constant()) return n.e.cast(n.e.dimension(extent), type);
  return n.e.scalar(type, static_cast<double>(extent.constant()));
}

/// Where each output element lies in the input. What is nearest is decided in f32 like elsewhere:
/// 17 / 1.7 is 10 there, and below 10 with the exact value of the f32 next to 1.7.
ValueId source_position(NodeContext& n, const ResizePlan& plan, const AxisPlan& given) {
  Emitter& e = n.e;
  const ElementType type = plan.mode == "nearest" ? ElementType::f32 : kF64;
  AxisPlan a = given;
  for (ValueId* part : {&a.scale, &a.roi_start, &a.roi_end}) {
    if (part->valid()) *part = e.cast(*part, type);
  }
  const ValueId one = e.scalar(type, 1);
  const ValueId y = e.cast(e.iota(ElementType::i64, {a.output}, 0), type);
  const ValueId last = number(n, type, a.input - 1);
  const ValueId width = e.mul(a.scale, number(n, type, a.input));
  const ValueId is_one = e.compare(Comparison::eq, width, 1.0);
  const ValueId span = e.select(is_one, one, e.sub(width, 1.0));
  const ValueId half_pixel = e.sub(e.div(e.add(y, 0.5), a.scale), 0.5);
  if (plan.transform == "asymmetric") return e.div(y, a.scale);
  if (plan.transform == "half_pixel") return half_pixel;
  if (plan.transform == "pytorch_half_pixel") return e.select(is_one, e.like(y, -0.5), half_pixel);
  if (plan.transform == "align_corners") {
    return e.select(is_one, e.like(y, 0), e.div(e.mul(y, last), span));
  }
  if (plan.transform == "half_pixel_symmetric") {
    const ValueId adjustment = e.div(number(n, type, a.output), width);
    const ValueId rest = e.sub(one, adjustment);
    return e.add(half_pixel, e.mul(rest, e.div(number(n, type, a.input), 2.0)));
  }
  if (plan.transform == "tf_crop_and_resize") {
    const ValueId extent = e.mul(e.sub(a.roi_end, a.roi_start), last);
    const ValueId middle = e.broadcast_to(e.div(extent, 2.0), e.shape(y));
    const ValueId along = e.div(e.mul(y, extent), span);
    return e.add(e.select(is_one, middle, along), e.mul(a.roi_start, last));
  }
  n.fail(fmt::format("attribute \"coordinate_transformation_mode\" is \"{}\"", plan.transform));
}

/// The interpolation kernel at distance x: a hat, or the cubic with parameter a.
ValueId kernel(NodeContext& n, const ResizePlan& plan, ValueId x) {
  Emitter& e = n.e;
  x = e.unary(ops::abs, x);
  if (plan.mode == "linear") return e.max(e.sub(e.like(x, 1), x), e.like(x, 0));
  const double a = plan.cubic_a;
  const ValueId square = e.mul(x, x), cube = e.mul(square, x);
  const ValueId near = e.add(e.sub(e.mul(cube, a + 2), e.mul(square, a + 3)), 1.0);
  const ValueId far =
      e.sub(e.add(e.sub(e.mul(cube, a), e.mul(square, 5 * a)), e.mul(x, 8 * a)), 4 * a);
  const ValueId within = e.select(e.compare(Comparison::lt, x, 2.0), far, e.like(x, 0));
  return e.select(e.compare(Comparison::le, x, 1.0), near, within);
}

ValueId folded(NodeContext& n, ValueId value) {
  const std::optional<Literal> literal = n.known_literal_of(value);
  return literal ? n.e.constant(*literal) : value;
}

/// Places in the operand: positions, rounded already, outside of it those of its edges.
ValueId places_of(NodeContext& n, ValueId index, const AxisPlan& a) {
  const ValueId last = n.e.dimension(a.input - 1);
  index = n.e.max(n.e.min(n.e.cast(index, ElementType::i64), last), n.e.integer(0));
  return folded(n, index);
}

ValueId nearest_index(NodeContext& n, const ResizePlan& plan, ValueId position) {
  Emitter& e = n.e;
  if (plan.nearest == "round_prefer_floor") return e.unary(ops::ceil, e.sub(position, 0.5));
  if (plan.nearest == "round_prefer_ceil") return e.unary(ops::floor, e.add(position, 0.5));
  if (plan.nearest == "floor") return e.unary(ops::floor, position);
  if (plan.nearest == "ceil") return e.unary(ops::ceil, position);
  n.fail(fmt::format("attribute \"nearest_mode\" is \"{}\"", plan.nearest));
}

ValueId weighted_sum(NodeContext& n, const ResizePlan& plan, const AxisPlan& a, ValueId x,
                     ValueId position) {
  Emitter& e = n.e;
  const double radius = plan.mode == "linear" ? 1 : 2;
  ValueId stretch = number(n, 1);
  int64_t reach = static_cast<int64_t>(radius);
  if (plan.antialias) {
    // Downscaling widens the kernel by 1 / scale.
    stretch = e.min(a.scale, stretch);
    if (!a.input.is_constant() || !a.output.is_constant()) {
      n.fail(fmt::format("needs a known input size for antialiasing; bind {} with --dim",
                         a.input.to_string()));
    }
    const double ratio =
        static_cast<double>(a.input.constant()) / static_cast<double>(a.output.constant());
    reach = static_cast<int64_t>(std::ceil(radius * std::max(1.0, ratio)));
    if (reach > 512) n.fail("antialiasing over so many elements is not supported");
  }
  const ValueId base = e.unary(ops::floor, position);
  std::vector<ValueId> indices, weights;
  ValueId total;
  for (int64_t tap = 1 - reach; tap <= reach; ++tap) {
    const ValueId index = e.add(base, static_cast<double>(tap));
    ValueId weight = kernel(n, plan, e.mul(e.sub(index, position), stretch));
    if (plan.exclude_outside) {
      const ValueId inside = e.binary(ops::bit_and, e.compare(Comparison::ge, index, 0.0),
                                      e.compare(Comparison::lt, index, number(n, kF64, a.input)));
      weight = e.select(inside, weight, e.like(weight, 0));
    }
    indices.push_back(index);
    weights.push_back(weight);
    total = total.valid() ? e.add(total, weight) : weight;
  }
  ValueId sum;
  for (size_t i = 0; i < indices.size(); ++i) {
    ValueId weight = weights[i];
    if (plan.antialias || plan.exclude_outside) weight = e.div(weight, total);
    weight = folded(n, e.cast(weight, e.element(x)));
    const ValueId part = n.e.take(x, places_of(n, indices[i], a), a.axis);
    const ValueId scaled = e.mul(part, e.broadcast_in(weight, e.shape(part), {a.axis}));
    sum = sum.valid() ? e.add(sum, scaled) : scaled;
  }
  return sum;
}

/// Whether an axis of any length becomes a whole number of times as long by saying each element as
/// often; the number, or 0.
int64_t repetitions(const NodeContext& n, const ResizePlan& plan, const AxisPlan& a) {
  if (a.input.is_constant() || plan.mode != "nearest") return 0;
  const std::optional<Literal> scale = n.known_literal_of(a.scale);
  if (!scale) return 0;
  const double times = scale->as_double(0);
  if (times < 1 || times > INT32_MAX || times != std::floor(times)) return 0;
  const bool by_corner = plan.transform == "asymmetric" && plan.nearest == "floor";
  const bool by_centre = plan.transform == "half_pixel" || plan.transform == "pytorch_half_pixel";
  const bool rounds = plan.nearest == "round_prefer_floor" || plan.nearest == "round_prefer_ceil";
  const auto whole = static_cast<int64_t>(times);
  return by_corner || (by_centre && rounds) ? whole : 0;
}

ValueId resize_axis(NodeContext& n, const ResizePlan& plan, const AxisPlan& a, ValueId x) {
  Emitter& e = n.e;
  if (const int64_t times = repetitions(n, plan, a); times > 0) return e.repeat(x, a.axis, times);
  const ValueId position = source_position(n, plan, a);
  const ValueId y =
      plan.mode == "nearest"
          ? take_known(n, x, places_of(n, nearest_index(n, plan, position), a), a.axis)
          : weighted_sum(n, plan, a, x, position);
  if (plan.transform != "tf_crop_and_resize") return y;
  const ValueId outside =
      e.binary(ops::bit_or, e.compare(Comparison::lt, position, 0.0),
               e.compare(Comparison::gt, position, number(n, e.element(position), a.input - 1)));
  const Shape shape = e.shape(y);
  return e.select(e.broadcast_in(outside, shape, {a.axis}), e.like(y, plan.extrapolation), y);
}

ValueId scalar_at(NodeContext& n, ValueId vector, int64_t i) {
  return n.e.cast(n.e.reshape(n.e.slice_axis(vector, 0, i, i + 1), {}), kF64);
}

/// How far each listed axis is stretched, and how long it gets.
struct Sizes {
  std::vector<ValueId> scales;  // f64 scalars
  Dims extents;
  std::vector<bool> unchanged;
};

/// In f32, in which scales are given: 15 × (23 / 15) is 23 there, and below it with the exact value
/// of the f32 next to 23 / 15.
Dim floor_scaled(const NodeContext& n, const Dim& extent, double scale) {
  if (scale == 1) return extent;
  if (!extent.is_constant()) {
    // A few bits beside a power of two: products in f32 are exact.
    constexpr double kMost = 1024;
    for (int64_t parts = 1; parts < kMost; parts *= 2) {
      const double whole = scale * static_cast<double>(parts);
      if (whole != std::floor(whole) || whole < 1 || whole > kMost) continue;
      return Dim::floor_div(extent * static_cast<int64_t>(whole), parts);
    }
    n.fail(fmt::format("its scale {} needs a known input size; bind {} with --dim", scale,
                       extent.to_string()));
  }
  const double scaled =
      std::floor(static_cast<float>(extent.constant()) * static_cast<float>(scale));
  if (!(scaled >= 0 && scaled < 1e9)) n.fail(fmt::format("a scale is {}", scale));
  return Dim(static_cast<int64_t>(scaled));
}

Sizes sizes_from_scales(NodeContext& n, ValueId scales, const Ints& axes) {
  Sizes result;
  const std::optional<Literal> known = n.known_literal_of(scales);
  const std::optional<Shape> declared = n.declared(0);
  if (n.e.shape(scales) != Shape{Dim(static_cast<int64_t>(axes.size()))}) {
    n.fail("the scales have another length than the axes");
  }
  for (size_t i = 0; i < axes.size(); ++i) {
    const Dim extent = n.shape(0)[static_cast<size_t>(axes[i])];
    if (known) {
      const double scale = known->as_double(static_cast<int64_t>(i));
      result.extents.push_back(floor_scaled(n, extent, scale));
    } else if (declared && static_cast<int64_t>(declared->size()) == n.rank(0)) {
      result.extents.push_back((*declared)[static_cast<size_t>(axes[i])]);
    } else {
      n.fail("the scales are only known at run time; make them constants");
    }
    result.scales.push_back(scalar_at(n, scales, static_cast<int64_t>(i)));
    result.unchanged.push_back(result.extents.back() == extent);
  }
  return result;
}

/// A constant where both are known, or one is a small multiple of the other, whatever it is.
ValueId stretched_scale(NodeContext& n, const Dim& size, const Dim& extent) {
  constexpr int64_t kMost = 16;
  if (size.is_constant() && extent.is_constant()) {
    return number(n, static_cast<double>(size.constant()) / static_cast<double>(extent.constant()));
  }
  for (int64_t times = 2; times <= kMost; ++times) {
    if (size == extent * times) return number(n, static_cast<double>(times));
  }
  return n.e.div(number(n, kF64, size), number(n, kF64, extent));
}

Sizes sizes_from_sizes(NodeContext& n, const Ints& axes) {
  Sizes result;
  const std::string policy = n.attr_string("keep_aspect_ratio_policy", "stretch");
  if (policy != "stretch" && policy != "not_larger" && policy != "not_smaller") {
    n.fail(fmt::format("attribute \"keep_aspect_ratio_policy\" is \"{}\"", policy));
  }
  if (n.shape(3) != Shape{Dim(static_cast<int64_t>(axes.size()))}) {
    n.fail("the sizes have another length than the axes");
  }
  const std::optional<Dims> known = n.known_dims(3);
  const std::optional<Shape> declared = n.declared(0);
  if (!known && (!declared || static_cast<int64_t>(declared->size()) != n.rank(0))) {
    static_cast<void>(n.dims(3));
  }
  ValueId common;
  double common_known = 0;
  for (size_t i = 0; i < axes.size(); ++i) {
    const Dim extent = n.shape(0)[static_cast<size_t>(axes[i])];
    const Dim size = known ? (*known)[i] : (*declared)[static_cast<size_t>(axes[i])];
    result.extents.push_back(size);
    if (size == extent && policy == "stretch") {
      result.scales.push_back(number(n, 1));
    } else if (extent == Dim(0)) {
      n.fail("an axis is empty");
    } else if (policy == "stretch") {
      result.scales.push_back(stretched_scale(n, size, extent));
    } else if (!size.is_constant() || !extent.is_constant()) {
      n.fail(fmt::format("needs known sizes to keep the aspect ratio; bind {} with --dim",
                         extent.to_string()));
    } else {
      const double from = static_cast<double>(extent.constant());
      const ValueId scale = n.e.div(scalar_at(n, n.input(3), static_cast<int64_t>(i)), from);
      const bool smaller = policy == "not_larger";
      common = !common.valid() ? scale : n.e.binary(smaller ? ops::min : ops::max, common, scale);
      const double value = static_cast<double>(size.constant()) / from;
      common_known = i == 0    ? value
                     : smaller ? std::min(common_known, value)
                               : std::max(common_known, value);
    }
  }
  if (policy != "stretch") {
    result.scales.assign(axes.size(), common);
    for (size_t i = 0; i < axes.size() && known; ++i) {
      const Dim extent = n.shape(0)[static_cast<size_t>(axes[i])];
      const double exact = common_known * static_cast<double>(extent.constant());
      if (!(exact >= 0 && exact < 1e9)) n.fail("a size is out of range");
      result.extents[i] = Dim(static_cast<int64_t>(std::floor(exact + 0.5)));
    }
  }
  for (size_t i = 0; i < axes.size(); ++i) {
    result.unchanged.push_back(result.extents[i] == n.shape(0)[static_cast<size_t>(axes[i])]);
  }
  return result;
}

void resize_by(NodeContext& n, const ResizePlan& plan, const Ints& axes, const Sizes& sizes,
               std::optional<ValueId> roi) {
  if (plan.mode != "nearest" && plan.mode != "linear" && plan.mode != "cubic") {
    n.fail(fmt::format("attribute \"mode\" is \"{}\"; nearest, linear and cubic are possible",
                       plan.mode));
  }
  const bool crops = plan.transform == "tf_crop_and_resize";
  const int64_t count = static_cast<int64_t>(axes.size());
  if (crops && (!roi || !(n.e.shape(*roi) == Shape{Dim(2 * count)}))) {
    n.fail("the region of interest has to hold a start and an end per axis");
  }
  const ElementType element = n.element(0);
  ValueId x = n.input(0);
  if (!is_float(element) && plan.mode != "nearest") x = n.e.cast(x, ElementType::f32);
  for (size_t i = 0; i < axes.size(); ++i) {
    if (sizes.unchanged[i] && !crops) continue;
    const Dim extent = n.shape(0)[static_cast<size_t>(axes[i])];
    const Dim output = sizes.extents[i];
    if (extent.range(n.ranges()).max < 1 || output.range(n.ranges()).max < 1) {
      n.fail("an axis is empty");
    }
    AxisPlan a{axes[i], extent, output, sizes.scales[i], {}, {}};
    if (crops) {
      a.roi_start = scalar_at(n, *roi, static_cast<int64_t>(i));
      a.roi_end = scalar_at(n, *roi, static_cast<int64_t>(i) + count);
    }
    x = resize_axis(n, plan, a, x);
  }
  n.result(n.e.cast(x, element));
}

void resize(NodeContext& n) {
  ResizePlan plan;
  plan.mode = n.attr_string("mode", "nearest");
  plan.transform =
      n.attr_string("coordinate_transformation_mode", n.opset() < 11 ? "asymmetric" : "half_pixel");
  plan.nearest = n.attr_string("nearest_mode", n.opset() < 11 ? "floor" : "round_prefer_floor");
  plan.antialias = n.attr_int("antialias", 0) != 0;
  plan.exclude_outside = n.attr_int("exclude_outside", 0) != 0;
  plan.cubic_a = n.attr_float("cubic_coeff_a", -0.75);
  plan.extrapolation = n.attr_float("extrapolation_value", 0);
  Ints axes = n.attr_ints("axes").value_or(counting(n.rank(0)));
  for (int64_t& axis : axes) axis = n.axis(axis, n.rank(0));
  const size_t scales = n.opset() < 11 ? 1 : 2;
  const bool by_scale = n.has(scales) && !(n.type(scales).element_count() == Dim(0));
  const bool by_size = n.opset() >= 11 && n.has(3) && !(n.type(3).element_count() == Dim(0));
  if (by_scale == by_size) n.fail("needs either scales or sizes");
  const Sizes sizes =
      by_scale ? sizes_from_scales(n, n.input(scales), axes) : sizes_from_sizes(n, axes);
  std::optional<ValueId> roi;
  if (n.opset() >= 11 && n.has(1)) roi = n.input(1);
  resize_by(n, plan, axes, sizes, roi);
}

void upsample(NodeContext& n) {
  ResizePlan plan;
  plan.mode = n.attr_string("mode", "nearest");
  plan.transform = "asymmetric";
  plan.nearest = "floor";
  const Ints axes = counting(n.rank(0));
  ValueId scales;
  if (n.has(1)) {
    scales = n.input(1);
  } else {
    const std::vector<float> given = n.attr_floats("scales");
    scales = n.e.constant(Literal::from_doubles(
        ElementType::f32, {static_cast<int64_t>(given.size())}, {given.begin(), given.end()}));
  }
  resize_by(n, plan, axes, sizes_from_scales(n, scales, axes), std::nullopt);
}

constexpr int64_t kNew = kNewestOpset;
#define RESIZE_ATTRIBUTES                                                                     \
  "coordinate_transformation_mode:s cubic_coeff_a:f exclude_outside:i extrapolation_value:f " \
  "mode:s nearest_mode:s"

const OperatorRule kRules[] = {
    {"Resize", 10, 10, 2, 2, resize, "mode:s"},
    {"Resize", 11, 17, 1, 4, resize, RESIZE_ATTRIBUTES},
    {"Resize", 18, kNew, 1, 4, resize,
     RESIZE_ATTRIBUTES " antialias:i axes:I keep_aspect_ratio_policy:s"},
    {"Upsample", 7, 8, 1, 1, upsample, "mode:s scales:F"},
    {"Upsample", 9, 9, 2, 2, upsample, "mode:s"},
};

}  // namespace

std::span<const OperatorRule> resample_rules() { return kRules; }

}  // namespace backcast
