// DeformConv: the elements under the kernel, sampled where offsets say, lie side by side as a map
// as many times as wide as the kernel has elements, and one convolution steps over them.
#include <algorithm>

#include "frontend/operators.h"
#include "frontend/rules/families.h"
#include "frontend/rules/interpolation.h"
#include "ir/graph/error.h"

namespace backcast {
namespace {

struct Deformation {
  NodeContext& n;
  int64_t spatial, kernel, groups;  // groups: of offsets
  Window window;

  /// Number `part` of each `parts` of [N, groups * kernel * parts, output…], as [N, output…,
  /// kernel, groups].
  ValueId at_places(ValueId given, int64_t parts, int64_t part) const {
    Emitter& e = n.e;
    Ints order = counting(spatial + 1);
    for (int64_t& d : order) d += d > 0 ? 1 : 0;
    order.push_back(1);
    // Channels last in one step, as convolutions leave them, then cut.
    const ValueId x = e.transpose(given, order);
    Shape split = e.shape(x);
    split.back() = Dim(groups);
    split.insert(split.end(), {Dim(kernel), Dim(parts)});
    const int64_t rank = spatial + 3;
    const ValueId own = e.slice_axis(e.reshape(x, split), rank, part, part + 1);
    split.pop_back();
    Ints swapped = counting(rank);
    std::swap(swapped[static_cast<size_t>(rank) - 1], swapped[static_cast<size_t>(rank) - 2]);
    if (groups > 1) return e.transpose(e.reshape(own, split), swapped);
    std::swap(split[static_cast<size_t>(rank) - 1], split[static_cast<size_t>(rank) - 2]);
    return e.reshape(own, split);
  }

  /// Where the kernel's elements lie along an axis without offsets, [output, kernel].
  ValueId regular(size_t axis, ElementType type) const {
    Emitter& e = n.e;
    Shape shape = {window.output[axis]};
    for (const int64_t extent : window.kernel) shape.push_back(Dim(extent));
    const ValueId element = e.mul(e.iota(type, shape, static_cast<int64_t>(axis) + 1),
                                  static_cast<double>(window.dilations[axis]));
    const ValueId corner =
        e.sub(e.mul(e.iota(type, shape, 0), static_cast<double>(window.strides[axis])),
              static_cast<double>(window.pad_low[axis].constant()));
    return e.reshape(e.add(corner, element), {window.output[axis], Dim(kernel)});
  }

  /// What lies under the kernel: [N, output… (the last one times kernel), C].
  ValueId sampled(ValueId offset, ValueId mask) const {
    Emitter& e = n.e;
    const Shape x = n.shape(0);
    const ElementType type = stash_of(n.element(0));
    Shape places = {x[0]};
    places.insert(places.end(), window.output.begin(), window.output.end());
    places.insert(places.end(), {Dim(kernel), Dim(groups)});
    const int64_t rank = static_cast<int64_t>(places.size());
    ValueId first = e.iota(ElementType::i32, places, 0);
    std::vector<TapAxis> axes;
    for (int64_t i = 0; i < spatial; ++i) {
      const size_t axis = static_cast<size_t>(i);
      const int64_t extent = x[axis + 2].constant();
      const ValueId base = e.broadcast_in(regular(axis, type), places, {i + 1, spatial + 1});
      const ValueId moved = e.cast(at_places(offset, spatial, i), type);
      const LinearTaps taps = linear_taps(e, e.add(base, moved), extent);
      first =
          e.add(e.mul(first, static_cast<double>(extent)), e.cast(taps.first, ElementType::i32));
      for (TapAxis& outer : axes) outer.rows *= extent;
      axes.push_back({taps.weights, counting(rank), groups});
    }
    if (mask.valid()) {
      // Once per place instead of once per channel.
      const ValueId factor = e.cast(at_places(mask, 1, 0), type);
      for (ValueId& weight : axes[0].weights) weight = e.mul(weight, factor);
    }
    first = e.add(e.mul(first, static_cast<double>(groups)),
                  e.iota(ElementType::i32, places, rank - 1));
    const ValueId values = interpolated(e, channel_rows(n, n.input(0), groups), first, axes);
    Shape joined = places;
    joined.resize(static_cast<size_t>(spatial) + 1);
    joined.back() = joined.back() * kernel;
    joined.push_back(x[1]);
    return e.reshape(values, joined);
  }
};

/// CompileError unless an input is [N, channels, output…].
void check_places(const NodeContext& n, size_t input, int64_t channels, const Window& window) {
  Shape expected = {n.shape(0)[0], Dim(channels)};
  expected.insert(expected.end(), window.output.begin(), window.output.end());
  if (n.shape(input) == expected) return;
  n.fail(fmt::format("input {} (\"{}\") has the shape {} and needs {}", input, n.input_name(input),
                     to_string(n.shape(input)), to_string(expected)));
}

int64_t groups_of(const NodeContext& n, const char* name, const Dim& channels) {
  const int64_t groups = n.attr_int(name, 1);
  if (groups < 1 || groups > INT32_MAX || !(Dim::mod(channels, groups) == Dim(0))) {
    n.fail(fmt::format("attribute \"{}\" is {} and does not divide {} channels", name, groups,
                       channels.to_string()));
  }
  return groups;
}

/// DeformConv-19, 22, with one factor of the mask per place for any number of axes: the text's
/// factor n is that of offsets. An axis of one element is one, which ONNX's reference divides by 0.
void deform_conv(NodeContext& n) {
  Emitter& e = n.e;
  const Shape x = n.shape(0), w = n.shape(1);
  const int64_t spatial = n.rank(0) - 2;
  if (spatial < 1 || n.rank(1) != n.rank(0) || n.rank(2) != n.rank(0)) {
    n.fail(
        fmt::format("needs an input [N, C, spatial…] and weights and offsets of its rank, and "
                    "has {}, {} and {}",
                    to_string(x), to_string(w), to_string(n.shape(2))));
  }
  Deformation d{n, spatial, 1, groups_of(n, "offset_group", x[1]), {}};
  Ints extents;
  for (size_t i = 2; i < w.size(); ++i) {
    static_cast<void>(fixed_extent(n, x[i]));
    extents.push_back(fixed_extent(n, w[i]));
    d.kernel *= extents.back();
  }
  d.window = window_of(n, x, extents);
  const int64_t groups = groups_of(n, "group", x[1]);
  static_cast<void>(groups_of(n, "group", w[0]));
  if (!(w[1] * groups == x[1])) {
    n.fail(fmt::format("the weights {} do not fit {} channels in {} groups", to_string(w),
                       x[1].to_string(), groups));
  }
  check_places(n, 2, d.groups * d.kernel * spatial, d.window);
  if (n.has(4)) check_places(n, 4, d.groups * d.kernel, d.window);
  ConvAttrs attrs;
  attrs.input_feature = spatial + 1;
  attrs.input_spatial = counting(spatial, 1);
  attrs.kernel_spatial = attrs.output_spatial = counting(spatial, 2);
  attrs.strides.assign(static_cast<size_t>(spatial), 1);
  attrs.input_dilation = attrs.kernel_dilation = attrs.strides;
  attrs.strides.back() = d.kernel;
  attrs.pad_low.assign(static_cast<size_t>(spatial), Dim(0));
  attrs.pad_high = attrs.pad_low;
  attrs.feature_groups = groups;
  Shape line = w;
  std::fill(line.begin() + 2, line.end(), Dim(1));
  line.back() = Dim(d.kernel);
  const ValueId map = d.sampled(n.input(2), n.has(4) ? n.input(4) : ValueId());
  ValueId y = e.emit(ops::conv, {map, e.reshape(n.input(1), line)}, std::move(attrs));
  if (n.has(3)) {
    if (!(n.shape(3) == Shape{w[0]})) n.fail("the bias needs one element per output channel");
    y = e.add(y, e.broadcast_in(n.input(3), e.shape(y), {1}));
  }
  n.result(y);
}

const OperatorRule kRules[] = {
    {"DeformConv", 19, kNewestOpset, 3, 5, deform_conv,
     "dilations:I group:i kernel_shape:I offset_group:i pads:I strides:I"},
};

}  // namespace

std::span<const OperatorRule> deform_conv_rules() { return kRules; }

}  // namespace backcast
