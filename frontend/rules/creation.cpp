// Tensors made from nothing but numbers and shapes.
#include <cmath>

#include "frontend/operators.h"
#include "frontend/rules/families.h"
#include "ir/graph/error.h"

namespace backcast {
namespace {

void constant(NodeContext& n) {
  const auto vector = [](size_t size) { return std::vector<int64_t>{static_cast<int64_t>(size)}; };
  if (const std::optional<Literal> value = n.attr_tensor("value")) {
    return n.result(n.e.constant(*value));
  }
  if (n.has_attr("value_float")) {
    return n.result(n.e.scalar(ElementType::f32, n.attr_float("value_float", 0)));
  }
  if (n.has_attr("value_int")) return n.result(n.e.integer(n.attr_int("value_int", 0)));
  if (n.has_attr("value_floats")) {
    const std::vector<float> floats = n.attr_floats("value_floats");
    const std::vector<double> values(floats.begin(), floats.end());
    return n.result(
        n.e.constant(Literal::from_doubles(ElementType::f32, vector(values.size()), values)));
  }
  if (n.has_attr("value_ints")) {
    const Ints ints = *n.attr_ints("value_ints");
    return n.result(n.e.constant(Literal::from_ints(vector(ints.size()), ints)));
  }
  n.fail("has no value of a supported kind; tensors, floats and ints are");
}

void constant_of_shape(NodeContext& n) {
  const std::optional<Dims> known = n.known_dims(0);
  const std::optional<Shape> declared = n.declared(0);
  const Dims shape = known ? *known : declared ? *declared : n.dims(0);
  for (const Dim& d : shape) {
    if (d.range(n.ranges()).min < 0) n.fail(fmt::format("extent {}", d.to_string()));
  }
  const Literal value = n.attr_tensor("value").value_or(Literal::scalar(ElementType::f32, 0));
  if (value.element_count() != 1) n.fail("attribute \"value\" has to hold one element");
  n.result(n.e.broadcast_to(n.e.reshape(n.e.constant(value), {}), shape));
}

/// max(ceil((limit - start) / delta), 0), where import can tell.
std::optional<Dim> range_length(NodeContext& n) {
  const std::optional<double> start = n.known_number(0), limit = n.known_number(1),
                              delta = n.known_number(2);
  if (delta && *delta == 0) n.fail("the step is 0");
  if (start && limit && delta) {
    const double count = std::max(std::ceil((*limit - *start) / *delta), 0.0);
    if (!(count < 1e15)) n.fail("the range is too long");
    return Dim(static_cast<int64_t>(count));
  }
  const std::optional<Dims> from = n.known_dims(0), to = n.known_dims(1), by = n.known_dims(2);
  if (!from || !to || !by || from->size() != 1 || to->size() != 1 || by->size() != 1) {
    return std::nullopt;
  }
  const Dim count = Dim::ceil_div((*to)[0] - (*from)[0], (*by)[0]);
  return count.range(n.ranges()).min >= 0 ? count : Dim::max(count, 0);
}

void range(NodeContext& n) {
  for (size_t i = 0; i < 3; ++i) {
    if (!(n.type(i).element_count() == Dim(1))) n.fail("start, limit and delta have to be scalars");
  }
  std::optional<Dim> length = range_length(n);
  const std::optional<Shape> declared = n.declared(0);
  if (!length && declared && declared->size() == 1) length = (*declared)[0];
  if (!length) {
    static_cast<void>(n.dims(1));
    static_cast<void>(n.dims(0));
    static_cast<void>(n.dims(2));
    n.fail("the length of the range is only known at run time");
  }
  const ElementType element = n.element(0);
  // Counted in f64 or i64, so that the last element is as exact as the first.
  const ElementType wide = !is_float(element)            ? ElementType::i64
                           : element == ElementType::f64 ? ElementType::f64
                                                         : ElementType::f32;
  const auto scalar = [&](size_t i) { return n.e.reshape(n.e.cast(n.input(i), wide), {}); };
  const ValueId steps = n.e.cast(n.e.iota(ElementType::i64, {*length}, 0), wide);
  const ValueId values = n.e.add(n.e.mul(steps, scalar(2)), scalar(0));
  n.result(n.e.cast(values, element));
}

/// column - row of a matrix's last two axes, as i32 of x's shape.
ValueId diagonal_number(NodeContext& n, const Shape& shape) {
  const int64_t rank = static_cast<int64_t>(shape.size());
  if (rank < 2) n.fail("needs an input of rank 2 or more");
  return n.e.sub(n.e.positions(shape, rank - 1), n.e.positions(shape, rank - 2));
}

/// The number k of a diagonal, i64, as i32: all beyond the largest matrix are alike.
ValueId bounded_diagonal(NodeContext& n, ValueId k) {
  constexpr double kMost = 2147483647;
  return n.e.cast(n.e.clamp(k, -kMost, kMost), ElementType::i32);
}

void eye_like(NodeContext& n) {
  const ElementType element = n.attr_element("dtype", n.element(0));
  if (n.rank(0) != 2) n.fail("needs a matrix");
  const ValueId diagonal = diagonal_number(n, n.shape(0));
  const ValueId hit =
      n.e.compare(Comparison::eq, diagonal, bounded_diagonal(n, n.e.integer(n.attr_int("k", 0))));
  n.result(n.e.cast(hit, element));
}

void trilu(NodeContext& n) {
  const ValueId x = n.input(0);
  ValueId k = n.e.integer(0);
  if (n.has(1)) {
    if (!(n.type(1).element_count() == Dim(1))) n.fail("input 1, k, has to be a scalar");
    k = n.e.reshape(n.e.cast(n.input(1), ElementType::i64), {});
  }
  const Comparison keep = n.attr_int("upper", 1) != 0 ? Comparison::ge : Comparison::le;
  const ValueId kept = n.e.compare(keep, diagonal_number(n, n.shape(0)), bounded_diagonal(n, k));
  n.result(n.e.select(kept, x, n.e.like(x, 0)));
}

void one_hot(NodeContext& n) {
  const int64_t rank = n.rank(0);
  const int64_t axis = n.attr_axis("axis", -1, rank + 1);
  std::optional<Dim> depth;
  if (const std::optional<double> number = n.known_number(1)) {
    if (!(*number >= 0 && *number < 1e15)) n.fail(fmt::format("the depth is {}", *number));
    depth = Dim(static_cast<int64_t>(*number));
  }
  const std::optional<Dims> symbolic = n.known_dims(1);
  if (!depth && symbolic && symbolic->size() == 1) depth = (*symbolic)[0];
  const std::optional<Shape> declared = n.declared(0);
  if (!depth && declared && static_cast<int64_t>(declared->size()) == rank + 1) {
    depth = (*declared)[static_cast<size_t>(axis)];
  }
  if (!depth) depth = n.dim(1);
  if (!(n.shape(2) == Shape{Dim(2)})) n.fail("input 2 has to hold two values, off and on");
  Shape shape = n.shape(0);
  shape.insert(shape.begin() + axis, *depth);
  Ints kept = counting(rank);
  for (int64_t& d : kept) d += d >= axis ? 1 : 0;
  const ValueId indices = n.e.wrap_negative(n.e.cast(n.input(0), ElementType::i64), *depth);
  const ValueId hit = n.e.compare(Comparison::eq, n.e.iota(ElementType::i64, shape, axis),
                                  n.e.broadcast_in(indices, shape, kept));
  const auto value = [&](int64_t i) {
    return n.e.reshape(n.e.slice_axis(n.input(2), 0, i, i + 1), {});
  };
  n.result(n.e.select(hit, value(1), value(0)));
}

/// a0 - a1 cos(2 pi i / N) + a2 cos(4 pi i / N), N being size or, when not periodic, size - 1.
void cosine_window(NodeContext& n, double a0, double a1, double a2) {
  std::optional<Dim> size;
  const std::optional<Dims> known = n.known_dims(0);
  const std::optional<Shape> declared = n.declared(0);
  if (known && known->size() == 1) size = (*known)[0];
  if (!size && declared && declared->size() == 1) size = (*declared)[0];
  if (!size) size = n.dim(0);
  if (size->range(n.ranges()).min < 0) n.fail("the size is negative");
  const Dim period = n.attr_int("periodic", 1) != 0 ? *size : *size - 1;
  const ValueId i = n.e.cast(n.e.iota(ElementType::i64, {*size}, 0), ElementType::f64);
  const ValueId length = n.e.cast(n.e.dimension(period), ElementType::f64);
  const ValueId angle = n.e.div(n.e.mul(i, 2 * M_PI), length);
  ValueId y = n.e.sub(n.e.like(angle, a0), n.e.mul(n.e.unary(ops::cos, angle), a1));
  if (a2 != 0) {
    y = n.e.add(y, n.e.mul(n.e.unary(ops::cos, n.e.mul(angle, 2.0)), a2));
  }
  n.result(n.e.cast(y, n.attr_element("output_datatype", ElementType::f32)));
}

constexpr int64_t kNew = kNewestOpset;

const OperatorRule kRules[] = {
    {"Constant", 7, 11, 0, 0, constant, "value:t"},
    {"Constant", 12, kNew, 0, 0, constant,
     "value:t value_float:f value_floats:F value_int:i value_ints:I value_string:s "
     "value_strings:S"},
    {"ConstantOfShape", 9, kNew, 1, 1, constant_of_shape, "value:t"},
    {"Range", 11, kNew, 3, 3, range},
    {"EyeLike", 9, kNew, 1, 1, eye_like, "dtype:i k:i"},
    {"Trilu", 14, kNew, 1, 2, trilu, "upper:i"},
    {"OneHot", 9, kNew, 3, 3, one_hot, "axis:i"},
    {"HannWindow", 17, kNew, 1, 1, [](NodeContext& n) { cosine_window(n, 0.5, 0.5, 0); },
     "output_datatype:i periodic:i"},
    {"HammingWindow", 17, kNew, 1, 1,
     [](NodeContext& n) { cosine_window(n, 25.0 / 46, 21.0 / 46, 0); },
     "output_datatype:i periodic:i"},
    {"BlackmanWindow", 17, kNew, 1, 1, [](NodeContext& n) { cosine_window(n, 0.42, 0.5, 0.08); },
     "output_datatype:i periodic:i"},
};

}  // namespace

std::span<const OperatorRule> creation_rules() { return kRules; }

}  // namespace backcast
