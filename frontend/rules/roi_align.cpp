// RoiAlign. Places of samples along an axis depend on the region and the axis alone, so they are
// found for rows and columns apart, with the channels of a place side by side.
#include <algorithm>

#include "frontend/operators.h"
#include "frontend/rules/families.h"
#include "frontend/rules/interpolation.h"
#include "ir/graph/error.h"

namespace backcast {
namespace {

/// All regions along one axis; vectors have one element per region.
struct Side {
  Emitter& e;
  bool mean;
  int64_t extent, bins;
  ValueId start, bin;     // vectors: where regions begin, and how long a bin is
  ValueId samples;        // vector: how many a bin has, 0 for regions without extent
  int64_t most = 0;       // of them
  bool adaptive = false;  // not all regions have that many

  ValueId spread(ValueId vector, const Shape& shape) const {
    return e.broadcast_in(vector, shape, {0});
  }

  /// Of all samples, [regions, bins * most].
  LinearTaps taps() const {
    const ElementType type = e.element(start);
    const Shape shape = {e.extent(start, 0), Dim(bins), Dim(most)};
    const ValueId divisor = e.max(samples, e.like(samples, 1));
    ValueId sample = e.iota(type, shape, 2);
    ValueId counts;
    if (adaptive) {
      // What a region has too many of lies where its last one does and does not change a maximum.
      const ValueId own = spread(samples, shape);
      counts = mean ? e.compare(Comparison::lt, sample, own) : e.compare(Comparison::gt, own, 0.0);
      sample = e.min(sample, spread(e.sub(divisor, 1.0), shape));
    }
    const ValueId bin_size = spread(bin, shape);
    const ValueId within = e.div(e.mul(e.add(sample, 0.5), bin_size), spread(divisor, shape));
    const ValueId before = e.mul(e.iota(type, shape, 1), bin_size);
    const ValueId at = e.add(e.add(spread(start, shape), before), within);
    // Within one element of the map its border counts, and what lies farther is zero.
    ValueId inside = e.binary(ops::bit_and, e.compare(Comparison::ge, at, -1.0),
                              e.compare(Comparison::le, at, static_cast<double>(extent)));
    if (adaptive) inside = e.binary(ops::bit_and, inside, counts);
    const double last = static_cast<double>(extent - 1);
    const Shape flat = {shape[0], Dim(bins * most)};
    LinearTaps result = linear_taps(e, e.reshape(e.clamp(at, 0, last), flat), extent);
    for (ValueId& weight : result.weights) {
      if (mean) weight = e.div(weight, spread(divisor, flat));
      weight = e.select(e.reshape(inside, flat), weight, e.like(weight, 0));
    }
    return result;
  }
};

/// How many samples a bin of each region has, where the attribute leaves it to their sizes.
void sample_adaptively(const NodeContext& n, Side& side) {
  side.adaptive = true;
  side.samples = side.e.max(side.e.unary(ops::ceil, side.bin), side.e.like(side.bin, 0));
  const std::optional<Literal> known = n.known_literal_of(side.samples);
  if (!known) {
    n.fail(
        "attribute \"sampling_ratio\" is 0, which makes the number of samples depend on regions "
        "that only run time knows; set it to how many a bin shall have along each axis, such as "
        "2, or make input 1 a constant");
  }
  side.most = 1;
  for (int64_t i = 0; i < known->element_count(); ++i) {
    const double samples = known->as_double(i);
    if (!(samples < INT16_MAX)) n.fail("a region is too large for \"sampling_ratio\" 0");
    side.most = std::max(side.most, static_cast<int64_t>(samples));
  }
}

/// The side of regions [x1, y1, x2, y2] whose lower edge is their column `edge`.
Side side_of(NodeContext& n, int64_t edge, int64_t extent, const char* attribute, bool mean) {
  Emitter& e = n.e;
  const std::string transform = n.attr_string("coordinate_transformation_mode",
                                              n.opset() < 16 ? "output_half_pixel" : "half_pixel");
  if (transform != "half_pixel" && transform != "output_half_pixel") {
    n.fail(
        fmt::format("attribute \"coordinate_transformation_mode\" is \"{}\"; half_pixel and "
                    "output_half_pixel are possible",
                    transform));
  }
  const auto coordinate = [&](int64_t column) {
    const ValueId given = e.slice_axis(n.input(1), 1, column, column + 1);
    const ValueId vector = e.cast(e.reshape(given, {n.shape(1)[0]}), stash_of(n.element(0)));
    const ValueId scaled = e.mul(vector, n.attr_float("spatial_scale", 1));
    return transform == "half_pixel" ? e.sub(scaled, 0.5) : scaled;
  };
  Side side{.e = e, .mean = mean, .extent = extent, .bins = n.attr_int(attribute, 1)};
  if (side.bins < 1 || side.bins > INT16_MAX) {
    n.fail(fmt::format("attribute \"{}\" is {}", attribute, side.bins));
  }
  side.start = coordinate(edge);
  ValueId length = e.sub(coordinate(edge + 2), side.start);
  if (transform == "output_half_pixel") length = e.max(length, e.like(length, 1));
  side.bin = e.div(length, static_cast<double>(side.bins));
  side.most = n.attr_int("sampling_ratio", 0);
  if (side.most < 0 || side.most > INT16_MAX) {
    n.fail(fmt::format("attribute \"sampling_ratio\" is {}", side.most));
  }
  side.samples = e.like(side.bin, static_cast<double>(side.most));
  if (side.most == 0) sample_adaptively(n, side);
  return side;
}

/// RoiAlign-10, 16, 22. The mode max is what ONNX's cases and ONNX Runtime have: the largest of the
/// weighted elements around all samples, not of the samples.
void roi_align(NodeContext& n) {
  Emitter& e = n.e;
  if (n.rank(0) != 4) {
    n.fail(fmt::format("needs an input [N, C, H, W] and has {}", to_string(n.shape(0))));
  }
  const Dim regions = n.rank(1) == 2 ? n.shape(1)[0] : Dim(0);
  if (n.rank(1) != 2 || !(n.shape(1)[1] == Dim(4)) || !(n.shape(2) == Shape{regions})) {
    n.fail(
        fmt::format("needs regions [regions, 4] and a batch index [regions] of each, and has {} "
                    "and {}",
                    to_string(n.shape(1)), to_string(n.shape(2))));
  }
  const std::string mode = n.attr_string("mode", "avg");
  if (mode != "avg" && mode != "max") {
    n.fail(fmt::format("attribute \"mode\" is \"{}\"; avg and max are possible", mode));
  }
  const bool mean = mode == "avg";
  const int64_t height = fixed_extent(n, n.shape(0)[2]), width = fixed_extent(n, n.shape(0)[3]);
  const Side y = side_of(n, 1, height, "output_height", mean);
  const Side x = side_of(n, 0, width, "output_width", mean);
  const ValueId map = channel_rows(n, n.input(0));
  const ValueId image = e.mul(e.cast(n.input(2), ElementType::i32), static_cast<double>(height));
  const LinearTaps vertical = y.taps(), horizontal = x.taps();
  const Shape places = {regions, Dim(y.bins * y.most), Dim(x.bins * x.most)};
  const auto number = [&](ValueId of, Ints dims) {
    return e.broadcast_in(e.cast(of, ElementType::i32), places, std::move(dims));
  };
  const ValueId line = e.add(number(image, {0}), number(vertical.first, {0, 1}));
  const ValueId first =
      e.add(e.mul(line, static_cast<double>(width)), number(horizontal.first, {0, 2}));
  const ValueId samples = interpolated(
      e, map, first, {{vertical.weights, {0, 1}, width}, {horizontal.weights, {0, 2}, 1}},
      mean ? ops::add : ops::max);
  const Dim channels = e.extent(samples, 3);
  const Shape of_bins = {regions, Dim(y.bins), Dim(y.most), Dim(x.bins), Dim(x.most), channels};
  ValueId result =
      e.reduce(mean ? Reduction::sum : Reduction::max, e.reshape(samples, of_bins), {2, 4});
  // Samples on an axis of one element have that one twice, the second time with the weight 0.
  if (!mean && std::min(height, width) == 1) result = e.max(result, e.like(result, 0));
  n.result(e.transpose(result, {0, 3, 1, 2}));
}

constexpr int64_t kNew = kNewestOpset;
#define ROI_ATTRIBUTES "mode:s output_height:i output_width:i sampling_ratio:i spatial_scale:f"

const OperatorRule kRules[] = {
    {"RoiAlign", 10, 15, 3, 3, roi_align, ROI_ATTRIBUTES},
    {"RoiAlign", 16, kNew, 3, 3, roi_align, ROI_ATTRIBUTES " coordinate_transformation_mode:s"},
};

}  // namespace

std::span<const OperatorRule> roi_align_rules() { return kRules; }

}  // namespace backcast
