// Operators that rearrange elements without choosing among them.
#include <algorithm>
#include <numeric>

#include "frontend/operators.h"
#include "frontend/rules/families.h"
#include "ir/graph/error.h"

namespace backcast {
namespace {

/// total / (product of the rest), exact; equal factors cancel first.
Dim remaining_extent(const NodeContext& n, Shape from, Shape rest) {
  const Dim total = product(from, 0, static_cast<int64_t>(from.size()));
  const Dim known = product(rest, 0, static_cast<int64_t>(rest.size()));
  std::erase_if(rest, [&](const Dim& d) {
    const Shape::iterator equal = std::find(from.begin(), from.end(), d);
    if (d == Dim(0) || equal == from.end()) return false;
    from.erase(equal);
    return true;
  });
  const Dim divisor = product(rest, 0, static_cast<int64_t>(rest.size()));
  if (!(divisor == Dim(0))) {
    const Dim quotient =
        Dim::floor_div(product(from, 0, static_cast<int64_t>(from.size())), divisor);
    if (quotient * known == total) return quotient;
  }
  n.fail(
      fmt::format("{} elements cannot be divided among extents of {}; the -1 of the shape has no "
                  "whole value",
                  total.to_string(), known.to_string()));
}

void reshape_to(NodeContext& n, Dims wanted, bool allow_zero) {
  const Shape from = n.shape(0);
  std::optional<size_t> open;
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i] == Dim(0) && !allow_zero) {
      if (i >= from.size())
        n.fail(fmt::format("shape[{}] is 0 and the input has no axis {}", i, i));
      wanted[i] = from[i];
    } else if (wanted[i] == Dim(-1)) {
      if (open) n.fail("the shape has more than one -1");
      open = i;
    } else if (wanted[i].is_constant() && wanted[i].constant() < 0) {
      n.fail(fmt::format("shape[{}] is {}", i, wanted[i].to_string()));
    }
  }
  if (open) {
    Shape rest = wanted;
    rest.erase(rest.begin() + static_cast<int64_t>(*open));
    wanted[*open] = remaining_extent(n, from, rest);
  }
  const int64_t rank = static_cast<int64_t>(wanted.size());
  if (!(product(wanted, 0, rank) == n.type(0).element_count())) {
    n.fail(fmt::format("shape {} has another number of elements than the input, {}",
                       to_string(wanted), to_string(from)));
  }
  n.result(n.e.reshape(n.input(0), wanted));
}

void reshape(NodeContext& n) {
  const bool allow_zero = n.attr_int("allowzero", 0) != 0;
  const std::optional<Dims> known = n.known_dims(1);
  const std::optional<Shape> declared = n.declared(0);
  if (known) return reshape_to(n, *known, allow_zero);
  if (declared) return reshape_to(n, *declared, true);
  reshape_to(n, n.dims(1), allow_zero);
}

void flatten(NodeContext& n) {
  const int64_t rank = n.rank(0);
  const int64_t axis = n.attr_int("axis", 1);
  if (axis < -rank || axis > rank) {
    n.fail(fmt::format("attribute \"axis\" is {} for a tensor of rank {}", axis, rank));
  }
  const int64_t split = axis < 0 ? axis + rank : axis;
  const Shape shape = n.shape(0);
  n.result(n.e.reshape(n.input(0), {product(shape, 0, split), product(shape, split, rank)}));
}

void transpose(NodeContext& n) {
  Ints reversed = counting(n.rank(0));
  std::reverse(reversed.begin(), reversed.end());
  const Ints permutation = n.attr_ints("perm").value_or(reversed);
  Ints sorted = permutation;
  std::sort(sorted.begin(), sorted.end());
  if (sorted != counting(n.rank(0))) {
    n.fail(fmt::format("attribute \"perm\" is no permutation of {} axes", n.rank(0)));
  }
  n.result(n.e.transpose(n.input(0), permutation));
}

/// Axes from the attribute or from input 1; none when only the declared result can tell.
bool takes_declared_shape(NodeContext& n) {
  if (n.has_attr("axes") || !n.has(1) || n.known_ints(1)) return false;
  const std::optional<Shape> declared = n.declared(0);
  if (!declared) return false;
  reshape_to(n, *declared, true);
  return true;
}

void squeeze(NodeContext& n) {
  if (takes_declared_shape(n)) return;
  const Shape from = n.shape(0);
  const std::optional<Ints> given = ints_of(n, "axes", 1);
  Shape to;
  const Ints axes = given ? n.axes(*given, n.rank(0)) : Ints();
  for (size_t i = 0; i < from.size(); ++i) {
    const bool named = std::count(axes.begin(), axes.end(), static_cast<int64_t>(i)) > 0;
    if (named && !(from[i] == Dim(1))) {
      n.fail(
          fmt::format("axis {} has the extent {} and cannot be squeezed", i, from[i].to_string()));
    }
    if (given ? !named : !(from[i] == Dim(1))) to.push_back(from[i]);
  }
  n.result(n.e.reshape(n.input(0), to));
}

void unsqueeze(NodeContext& n) {
  if (takes_declared_shape(n)) return;
  const std::optional<Ints> given = ints_of(n, "axes", 1);
  if (!given) n.fail("attribute \"axes\" is missing");
  Shape to = n.shape(0);
  const Ints axes = n.axes(*given, n.rank(0) + static_cast<int64_t>(given->size()));
  for (const int64_t axis : axes) to.insert(to.begin() + axis, Dim(1));
  n.result(n.e.reshape(n.input(0), to));
}

void concat(NodeContext& n) {
  if (!n.has_attr("axis")) n.fail("attribute \"axis\" is missing");
  n.result(n.e.concat(n.all_inputs(), n.attr_axis("axis", 0, n.rank(0))));
}

/// Sizes of the parts: given, declared, or equal with a shorter last one.
Dims split_sizes(NodeContext& n, int64_t axis) {
  const int64_t parts = static_cast<int64_t>(n.output_count());
  if (n.has_attr("split")) {
    const Ints sizes = *n.attr_ints("split");
    return Dims(sizes.begin(), sizes.end());
  }
  if (n.has(1)) {
    if (n.known_dims(1)) return *n.known_dims(1);
    Dims sizes;
    for (int64_t k = 0; k < parts; ++k) {
      const std::optional<Shape> declared = n.declared(static_cast<size_t>(k));
      if (!declared || axis >= static_cast<int64_t>(declared->size())) return n.dims(1);
      sizes.push_back((*declared)[static_cast<size_t>(axis)]);
    }
    return sizes;
  }
  const Dim extent = n.shape(0)[static_cast<size_t>(axis)];
  const int64_t count = n.attr_int("num_outputs", parts);
  if (count != parts || parts == 0) {
    n.fail(
        fmt::format("attribute \"num_outputs\" is {} and the node has {} outputs", count, parts));
  }
  const Dim each = Dim::ceil_div(extent, count);
  Dims sizes(static_cast<size_t>(count - 1), each);
  sizes.push_back(extent - each * (count - 1));
  return sizes;
}

void split(NodeContext& n) {
  const int64_t axis = n.attr_axis("axis", 0, n.rank(0));
  const Dims sizes = split_sizes(n, axis);
  if (sizes.size() != n.output_count()) {
    n.fail(fmt::format("{} sizes are given for {} outputs", sizes.size(), n.output_count()));
  }
  const std::vector<ValueId> parts = parts_of(n, axis, sizes);
  for (size_t k = 0; k < parts.size(); ++k) n.set(k, parts[k]);
}

void check_extents(const NodeContext& n, const Dims& dims) {
  for (const Dim& d : dims) {
    if (d.is_constant() && d.constant() < 0) n.fail(fmt::format("extent {}", d.to_string()));
  }
}

void expand(NodeContext& n) {
  const std::optional<Dims> known = n.known_dims(1);
  const std::optional<Shape> declared = n.declared(0);
  const Dims wanted = known ? *known : declared ? *declared : n.dims(1);
  check_extents(n, wanted);
  n.result(n.e.broadcast_to(n.input(0), broadcast_shapes(n.shape(0), wanted)));
}

/// [a, b] becomes [1, a, 1, b], is broadcast to [r, a, s, b], and merged to [r*a, s*b].
void tile(NodeContext& n) {
  const Shape from = n.shape(0);
  std::optional<Dims> repeats = n.known_dims(1);
  if (!repeats && n.declared(0) && n.declared(0)->size() == from.size()) {
    repeats.emplace();
    for (size_t i = 0; i < from.size(); ++i) {
      repeats->push_back(from[i] == Dim(0) ? Dim(1) : Dim::floor_div((*n.declared(0))[i], from[i]));
    }
  }
  if (!repeats) repeats = n.dims(1);
  if (repeats->size() != from.size()) {
    n.fail(
        fmt::format("{} repeats are given for a tensor of rank {}", repeats->size(), from.size()));
  }
  check_extents(n, *repeats);
  Shape interleaved, merged;
  Ints dims;
  for (size_t i = 0; i < from.size(); ++i) {
    interleaved.push_back((*repeats)[i]);
    interleaved.push_back(from[i]);
    dims.push_back(static_cast<int64_t>(2 * i + 1));
    merged.push_back((*repeats)[i] * from[i]);
  }
  n.result(n.e.reshape(n.e.broadcast_in(n.input(0), interleaved, dims), merged));
}

int64_t block_size(const NodeContext& n) {
  const int64_t block = n.attr_int("blocksize", 0);
  if (n.rank(0) != 4) n.fail("needs an input of rank 4");
  if (block < 1 || block > INT32_MAX) n.fail(fmt::format("attribute \"blocksize\" is {}", block));
  return block;
}

Dim divided(const NodeContext& n, const Dim& extent, int64_t by) {
  if (!(Dim::mod(extent, by) == Dim(0))) {
    n.fail(fmt::format("extent {} is no multiple of {}", extent.to_string(), by));
  }
  return Dim::floor_div(extent, by);
}

void depth_to_space(NodeContext& n) {
  const int64_t b = block_size(n);
  const Shape s = n.shape(0);
  const std::string mode = n.attr_string("mode", "DCR");
  if (mode != "DCR" && mode != "CRD") n.fail("attribute \"mode\" has to be DCR or CRD");
  const Dim depth = divided(n, s[1], b * b);
  const bool depth_first = mode == "CRD";
  const Shape split =
      depth_first ? Shape{s[0], depth, b, b, s[2], s[3]} : Shape{s[0], b, b, depth, s[2], s[3]};
  const Ints order = depth_first ? Ints{0, 1, 4, 2, 5, 3} : Ints{0, 3, 4, 1, 5, 2};
  const ValueId y = n.e.transpose(n.e.reshape(n.input(0), split), order);
  n.result(n.e.reshape(y, {s[0], depth, s[2] * b, s[3] * b}));
}

void space_to_depth(NodeContext& n) {
  const int64_t b = block_size(n);
  const Shape s = n.shape(0);
  const Dim h = divided(n, s[2], b), w = divided(n, s[3], b);
  const ValueId split = n.e.reshape(n.input(0), {s[0], s[1], h, Dim(b), w, Dim(b)});
  const ValueId y = n.e.transpose(split, {0, 3, 5, 1, 2, 4});
  n.result(n.e.reshape(y, {s[0], s[1] * (b * b), h, w}));
}

void shape(NodeContext& n) {
  const int64_t rank = n.rank(0);
  const auto bounded = [&](int64_t i) {
    return std::clamp<int64_t>(i < 0 ? i + rank : i, 0, rank);
  };
  const int64_t start = bounded(n.attr_int("start", 0));
  const int64_t end = std::max(start, bounded(n.attr_int("end", rank)));
  const Shape s = n.shape(0);
  n.result(n.e.index_vector(Dims(s.begin() + start, s.begin() + end)));
}

void size(NodeContext& n) { n.result(n.e.dimension(n.type(0).element_count())); }

constexpr int64_t kNew = kNewestOpset;

const OperatorRule kRules[] = {
    {"Reshape", 7, 13, 2, 2, reshape},
    {"Reshape", 14, kNew, 2, 2, reshape, "allowzero:i"},
    {"Flatten", 7, kNew, 1, 1, flatten, "axis:i"},
    {"Transpose", 7, kNew, 1, 1, transpose, "perm:I"},
    {"Squeeze", 7, 12, 1, 1, squeeze, "axes:I"},
    {"Squeeze", 13, kNew, 1, 2, squeeze},
    {"Unsqueeze", 7, 12, 1, 1, unsqueeze, "axes:I"},
    {"Unsqueeze", 13, kNew, 2, 2, unsqueeze},
    {"Concat", 7, kNew, 1, -1, concat, "axis:i"},
    {"Split", 7, 12, 1, 1, split, "axis:i split:I"},
    {"Split", 13, 17, 1, 2, split, "axis:i"},
    {"Split", 18, kNew, 1, 2, split, "axis:i num_outputs:i"},
    {"Expand", 8, kNew, 2, 2, expand},
    {"Tile", 7, kNew, 2, 2, tile},
    {"DepthToSpace", 7, kNew, 1, 1, depth_to_space, "blocksize:i mode:s"},
    {"SpaceToDepth", 7, kNew, 1, 1, space_to_depth, "blocksize:i"},
    {"Shape", 7, 14, 1, 1, shape},
    {"Shape", 15, kNew, 1, 1, shape, "start:i end:i"},
    {"Size", 7, kNew, 1, 1, size},
};

}  // namespace

std::vector<ValueId> parts_of(NodeContext& n, int64_t axis, const Dims& sizes) {
  Dim total(0);
  for (const Dim& size : sizes) {
    if (size.range(n.ranges()).min < 0) n.fail(fmt::format("a part has size {}", size.to_string()));
    total = total + size;
  }
  const Dim extent = n.shape(0)[static_cast<size_t>(axis)];
  if (!(total == extent)) {
    n.fail(fmt::format("the parts add up to {} and the axis has {}", total.to_string(),
                       extent.to_string()));
  }
  std::vector<ValueId> parts;
  Dim start(0);
  for (const Dim& size : sizes) {
    parts.push_back(n.e.slice_axis(n.input(0), axis, start, start + size));
    start = start + size;
  }
  return parts;
}

std::span<const OperatorRule> shape_rules() { return kRules; }

}  // namespace backcast
