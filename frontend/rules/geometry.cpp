// Sampling grids and image patches: AffineGrid, GridSample, Col2Im.
#include <algorithm>
#include <cmath>

#include "frontend/operators.h"
#include "frontend/rules/families.h"
#include "ir/graph/error.h"

namespace backcast {
namespace {

/// -1 … 1 over `size` elements: their centres, or with aligned corners the first and last element.
ValueId normalised_positions(NodeContext& n, ElementType element, int64_t size, bool align) {
  std::vector<double> values;
  for (int64_t i = 0; i < size; ++i) {
    const double at = static_cast<double>(i), count = static_cast<double>(size);
    values.push_back(align ? (size == 1 ? 0 : 2 * at / (count - 1) - 1) : (2 * at + 1) / count - 1);
  }
  return n.e.constant(Literal::from_doubles(element, {size}, values));
}

void affine_grid(NodeContext& n) {
  Emitter& e = n.e;
  if (n.rank(0) != 3) n.fail("theta has to be of rank 3");
  std::optional<Dims> size = n.known_dims(1);
  const std::optional<Shape> declared = n.declared(0);
  if (!size && declared && declared->size() >= 3) {
    size = Dims{(*declared)[0], Dim(1)};
    size->insert(size->end(), declared->begin() + 1, declared->end() - 1);
  }
  if (!size) size = n.dims(1);
  const int64_t spatial = static_cast<int64_t>(size->size()) - 2;
  const Shape theta = n.shape(0);
  if ((spatial != 2 && spatial != 3) || !(theta[1] == Dim(spatial)) ||
      !(theta[2] == Dim(spatial + 1))) {
    n.fail("theta and size do not fit; [N, 2, 3] with 4 sizes or [N, 3, 4] with 5 are possible");
  }
  const ElementType element = n.element(0);
  const bool align = n.attr_int("align_corners", 0) != 0;
  Shape points(size->begin() + 2, size->end());
  // Homogeneous coordinates x, y(, z), 1: the last spatial axis is x.
  std::vector<ValueId> parts;
  for (int64_t axis = spatial; axis-- > 0;) {
    const Dim extent = points[static_cast<size_t>(axis)];
    if (!extent.is_constant() || extent.constant() < 1 || extent.constant() > 1 << 20) {
      n.fail("the size has to be fixed and positive");
    }
    const ValueId along = normalised_positions(n, element, extent.constant(), align);
    parts.push_back(e.unsqueeze(e.broadcast_in(along, points, {axis}), spatial));
  }
  Shape ones = points;
  ones.push_back(Dim(1));
  parts.push_back(e.filled({element, ones}, 1));
  const ValueId grid = e.concat(parts, spatial);
  const ValueId moved = e.dot(grid, n.input(0), {{}, {}, {spatial}, {2}});  // […, N, spatial]
  Ints order = {spatial};
  for (int64_t i = 0; i < spatial; ++i) order.push_back(i);
  order.push_back(spatial + 1);
  n.result(e.transpose(moved, order));
}

/// One neighbour along one axis: where it is and how much it counts.
struct Tap {
  ValueId index, weight;  // f32 or f64, of the grid's shape without its last axis
};

struct GridSampler {
  NodeContext& n;
  std::string mode, padding;
  bool align;

  /// Mirrors x into [low, high].
  ValueId reflect(ValueId x, double low, double high) const {
    Emitter& e = n.e;
    const double span = high - low;
    if (span <= 0) return e.like(x, low);
    const ValueId from_low = e.unary(ops::abs, e.sub(x, low));
    const ValueId turns = e.unary(ops::floor, e.div(from_low, span));
    const ValueId rest = e.sub(from_low, e.mul(turns, span));
    const ValueId half = e.mul(turns, 0.5);
    const ValueId even = e.compare(Comparison::eq, e.unary(ops::floor, half), half);
    return e.select(even, e.add(rest, low), e.sub(e.like(x, high), rest));
  }

  ValueId padded(ValueId x, int64_t size) const {
    const double last = static_cast<double>(size - 1);
    if (padding == "reflection") {
      x = align ? reflect(x, 0, last) : reflect(x, -0.5, last + 0.5);
    }
    return padding == "zeros" ? x : n.e.clamp(x, 0, last);
  }

  /// Keys' cubic with a = -0.75.
  ValueId cubic(ValueId x) const {
    Emitter& e = n.e;
    x = e.unary(ops::abs, x);
    const ValueId near = e.add(e.mul(e.mul(e.sub(e.mul(x, 1.25), 2.25), x), x), 1.0);
    const ValueId far = e.mul(e.sub(e.mul(e.add(e.mul(e.sub(x, 5.0), x), 8.0), x), 4.0), -0.75);
    return e.select(e.compare(Comparison::le, x, 1.0), near, far);
  }

  std::vector<Tap> taps(ValueId coordinate, int64_t size) const {
    Emitter& e = n.e;
    const double extent = static_cast<double>(size);
    ValueId x = align ? e.mul(e.add(coordinate, 1.0), (extent - 1) / 2)
                      : e.sub(e.mul(e.add(coordinate, 1.0), extent / 2), 0.5);
    if (mode == "nearest") {
      const ValueId index = padded(e.unary(ops::round_even, x), size);
      return {{e.unary(ops::round_even, index), e.like(x, 1)}};
    }
    std::vector<Tap> result;
    if (mode == "linear") x = padded(x, size);
    const ValueId base = e.unary(ops::floor, x);
    const ValueId fraction = e.sub(x, base);
    if (mode == "linear") {
      result.push_back({base, e.sub(e.like(x, 1), fraction)});
      result.push_back({e.add(base, 1.0), fraction});
      return result;
    }
    for (double k = -1; k <= 2; ++k) {
      const ValueId index = e.add(base, k);
      result.push_back({padded(index, size), cubic(e.sub(fraction, k))});
    }
    return result;
  }
};

/// x[n, :, index…] for whole-number positions; those outside give 0.
ValueId sample(NodeContext& n, const std::vector<Tap>& taps) {
  Emitter& e = n.e;
  const int64_t spatial = static_cast<int64_t>(taps.size());
  const Shape x = n.shape(0);
  std::vector<ValueId> components;
  ValueId weight, inside;
  for (int64_t i = 0; i < spatial; ++i) {
    const Tap& tap = taps[static_cast<size_t>(i)];
    const double size = static_cast<double>(x[static_cast<size_t>(i) + 2].constant());
    const ValueId valid = e.binary(ops::bit_and, e.compare(Comparison::ge, tap.index, 0.0),
                                   e.compare(Comparison::lt, tap.index, size));
    inside = inside.valid() ? e.binary(ops::bit_and, inside, valid) : valid;
    weight = weight.valid() ? e.mul(weight, tap.weight) : tap.weight;
    components.push_back(e.unsqueeze(e.cast(tap.index, ElementType::i64), spatial + 1));
  }
  GatherAttrs attrs;
  attrs.offset_dims = {1};
  attrs.operand_batching_dims = attrs.indices_batching_dims = {0};
  attrs.collapsed_slice_dims = attrs.start_index_map = counting(spatial, 2);
  attrs.index_vector_dim = spatial + 1;
  attrs.slice_sizes.assign(static_cast<size_t>(spatial) + 2, Dim(1));
  attrs.slice_sizes[1] = x[1];
  const ValueId value =
      e.emit(ops::gather, {n.input(0), e.concat(components, spatial + 1)}, std::move(attrs));
  Ints kept = {0};
  for (int64_t i = 0; i < spatial; ++i) kept.push_back(i + 2);
  const Shape shape = e.shape(value);
  const ValueId scaled =
      e.mul(value, e.broadcast_in(e.cast(weight, e.element(value)), shape, kept));
  return e.select(e.broadcast_in(inside, shape, kept), scaled, e.like(value, 0));
}

void grid_sample(NodeContext& n) {
  Emitter& e = n.e;
  const int64_t spatial = n.rank(0) - 2;
  const Shape x = n.shape(0), grid = n.shape(1);
  if ((spatial != 2 && spatial != 3) || grid.size() != x.size() || !(grid.back() == Dim(spatial))) {
    n.fail(
        "needs an input [N, C, H, W] with a grid [N, H', W', 2], or the same in three dimensions");
  }
  GridSampler sampler{n, n.attr_string("mode", "linear"), n.attr_string("padding_mode", "zeros"),
                      n.attr_int("align_corners", 0) != 0};
  if (sampler.mode == "bilinear") sampler.mode = "linear";
  if (sampler.mode == "bicubic") sampler.mode = "cubic";
  if (sampler.mode != "linear" && sampler.mode != "cubic" && sampler.mode != "nearest") {
    n.fail(fmt::format("attribute \"mode\" is \"{}\"", sampler.mode));
  }
  if (sampler.padding != "zeros" && sampler.padding != "border" &&
      sampler.padding != "reflection") {
    n.fail(fmt::format("attribute \"padding_mode\" is \"{}\"", sampler.padding));
  }
  std::vector<std::vector<Tap>> axes;
  Shape positions(grid.begin(), grid.end() - 1);
  for (int64_t i = 0; i < spatial; ++i) {
    const Dim size = x[static_cast<size_t>(i) + 2];
    if (!size.is_constant() || size.constant() < 1) n.fail("the spatial extents have to be fixed");
    // The grid's last axis holds x, y(, z); x belongs to the last spatial axis.
    const int64_t component = spatial - 1 - i;
    const ValueId coordinate =
        e.reshape(e.slice_axis(n.input(1), spatial + 1, component, component + 1), positions);
    axes.push_back(sampler.taps(coordinate, size.constant()));
  }
  const size_t count = axes[0].size();
  size_t combinations = 1;
  for (int64_t i = 0; i < spatial; ++i) combinations *= count;
  ValueId sum;
  for (size_t combination = 0; combination < combinations; ++combination) {
    std::vector<Tap> chosen;
    size_t rest = combination;
    for (const std::vector<Tap>& taps : axes) {
      chosen.push_back(taps[rest % count]);
      rest /= count;
    }
    const ValueId part = sample(n, chosen);
    sum = sum.valid() ? e.add(sum, part) : part;
  }
  n.result(sum);
}

Ints per_axis(const NodeContext& n, const char* name, size_t count, int64_t fallback) {
  const Ints values = n.attr_ints(name).value_or(Ints(count, fallback));
  bool good = values.size() == count;
  for (const int64_t value : values) good = good && value >= fallback && value <= INT32_MAX;
  if (!good) n.fail(fmt::format("attribute \"{}\" needs {} values", name, count));
  return values;
}

/// The extents of image and block, the image's also from the declared output.
void col2im(NodeContext& n) {
  Emitter& e = n.e;
  if (n.rank(0) != 3) n.fail("the input has to be of rank 3");
  std::optional<Dims> image = n.known_dims(1);
  const std::optional<Shape> declared = n.declared(0);
  if (!image && declared && declared->size() > 2) {
    image = Dims(declared->begin() + 2, declared->end());
  }
  if (!image) image = n.dims(1);
  const size_t spatial = image->size();
  if (!n.known_ints(2) && !declared) static_cast<void>(n.ints(2));
  const Ints strides = per_axis(n, "strides", spatial, 1);
  const Ints dilations = per_axis(n, "dilations", spatial, 1);
  const Ints pads = per_axis(n, "pads", spatial * 2, 0);
  const Ints block = n.ints(2);
  if (block.size() != spatial) n.fail("image_shape and block_shape have different lengths");
  Shape padded, windows;
  Dim positions(1), cells(1);
  for (size_t i = 0; i < spatial; ++i) {
    if (block[i] < 1 || block[i] > INT32_MAX) n.fail("the block's extents have to be positive");
    padded.push_back((*image)[i] + pads[i] + pads[i + spatial]);
    const Dim room = padded[i] - ((block[i] - 1) * dilations[i] + 1);
    if (room.range(n.ranges()).min < 0) n.fail("the block is larger than the image");
    windows.push_back(Dim::floor_div(room, strides[i]) + 1);
    positions = positions * windows[i];
    cells = cells * block[i];
  }
  const Shape shape = n.shape(0);
  if (!(shape[2] == positions) || !(Dim::mod(shape[1], cells) == Dim(0))) {
    n.fail(fmt::format("the input {} does not hold {} blocks of {} elements", to_string(shape),
                       positions.to_string(), cells.to_string()));
  }
  const Dim channels = Dim::floor_div(shape[1], cells);
  // [N, C, block…, windows…]; every element is added to its place in the padded image.
  Shape split = {shape[0], channels};
  for (const int64_t b : block) split.push_back(b);
  split.insert(split.end(), windows.begin(), windows.end());
  const ValueId updates = e.reshape(n.input(0), split);
  const int64_t rank = static_cast<int64_t>(split.size());
  std::vector<ValueId> coordinates;
  for (int64_t i = 0; i < static_cast<int64_t>(spatial) + 2; ++i) {
    ValueId at = e.iota(ElementType::i64, split, i);
    if (i >= 2) {
      const size_t s = static_cast<size_t>(i) - 2;
      const ValueId window = e.iota(ElementType::i64, split, i + static_cast<int64_t>(spatial));
      at = e.add(e.mul(at, e.integer(dilations[s])), e.mul(window, e.integer(strides[s])));
    }
    coordinates.push_back(e.unsqueeze(at, rank));
  }
  Shape canvas = {shape[0], channels};
  canvas.insert(canvas.end(), padded.begin(), padded.end());
  ScatterAttrs attrs;
  attrs.combiner = Combiner::add;
  attrs.inserted_window_dims = counting(static_cast<int64_t>(canvas.size()));
  attrs.scatter_dims_to_operand_dims = attrs.inserted_window_dims;
  attrs.index_vector_dim = rank;
  ValueId y = e.emit(ops::scatter,
                     {e.filled({n.element(0), canvas}, 0), e.concat(coordinates, rank), updates},
                     std::move(attrs));
  for (size_t i = 0; i < spatial; ++i) {
    y = e.slice_axis(y, static_cast<int64_t>(i) + 2, pads[i], Dim(pads[i]) + (*image)[i]);
  }
  n.result(y);
}

constexpr int64_t kNew = kNewestOpset;

const OperatorRule kRules[] = {
    {"AffineGrid", 20, kNew, 2, 2, affine_grid, "align_corners:i"},
    {"GridSample", 16, kNew, 2, 2, grid_sample, "align_corners:i mode:s padding_mode:s"},
    {"Col2Im", 18, kNew, 3, 3, col2im, "dilations:I pads:I strides:I"},
};

}  // namespace

std::span<const OperatorRule> geometry_rules() { return kRules; }

}  // namespace backcast
