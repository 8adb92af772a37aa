#include "passes/graph/algebra.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "passes/graph/dimensions.h"
#include "passes/graph/value_ranges.h"

namespace backcast {

bool is_splat(const Builder& b, ValueId id, double value) {
  const Literal* constant = spread_constant_of(b, id);
  return constant != nullptr && constant->is_splat(value);
}

bool is_exact_float(const Builder& b, const Node& cast) {
  const std::optional<ValueRange> from = range_of(b.tensor_type(cast.operands[0]).element);
  const ElementType to = cast.type.tensor().element;
  return from && from->reach() <= 0x1p16 && (to == ElementType::f32 || to == ElementType::f64);
}

ValueId filled(Builder& b, TensorType type, double value) {
  const ValueId scalar = b.scalar(type.element, value);
  if (type.shape.empty()) return scalar;
  return b.emit(ops::broadcast, {scalar}, BroadcastAttrs{std::move(type.shape), {}});
}

ValueId converted(Builder& b, ValueId x, ElementType to) {
  return b.tensor_type(x).element == to ? x : b.emit(ops::cast, {x}, CastAttrs{to});
}

namespace {

using Result = std::optional<ValueId>;

const Node& operand(const Builder& b, const Node& node, size_t i) {
  return b.node(node.operands[i]);
}

bool same_type(const Builder& b, const Node& node) { return b.type(node.operands[0]) == node.type; }

Result same_shape_is_operand(Builder& b, const Node& node) {
  return same_type(b, node) ? Result(node.operands[0]) : std::nullopt;
}

Result add_zero(Builder& b, const Node& node) {
  // x + (-0) is x for every x, x + 0 loses the sign of a negative zero: accepted.
  if (is_splat(b, node.operands[1], 0)) return node.operands[0];
  if (is_splat(b, node.operands[0], 0)) return node.operands[1];
  return std::nullopt;
}

Result sub_zero(Builder& b, const Node& node) {
  return is_splat(b, node.operands[1], 0) ? Result(node.operands[0]) : std::nullopt;
}

Result mul_one(Builder& b, const Node& node) {
  if (is_splat(b, node.operands[1], 1)) return node.operands[0];
  if (is_splat(b, node.operands[0], 1)) return node.operands[1];
  return std::nullopt;
}

Result div_one(Builder& b, const Node& node) {
  return is_splat(b, node.operands[1], 1) ? Result(node.operands[0]) : std::nullopt;
}

Result reshape_of_reshape(Builder& b, const Node& node) {
  const Node& inner = operand(b, node, 0);
  if (inner.op != &ops::reshape) return std::nullopt;
  return b.emit(ops::reshape, {inner.operands[0]}, node.attrs);
}

Result transpose_of_transpose(Builder& b, const Node& node) {
  const Node& inner = operand(b, node, 0);
  if (inner.op != &ops::transpose) return std::nullopt;
  const Ints& outer_permutation = node.attrs.as<TransposeAttrs>().permutation;
  const Ints& inner_permutation = inner.attrs.as<TransposeAttrs>().permutation;
  TransposeAttrs attrs;
  for (int64_t i : outer_permutation) {
    attrs.permutation.push_back(inner_permutation[static_cast<size_t>(i)]);
  }
  return b.emit(ops::transpose, {inner.operands[0]}, attrs);
}

Result identity_transpose(Builder&, const Node& node) {
  const Ints& permutation = node.attrs.as<TransposeAttrs>().permutation;
  return std::is_sorted(permutation.begin(), permutation.end()) ? Result(node.operands[0])
                                                                : std::nullopt;
}

/// transpose(broadcast(x)) is a broadcast of the (smaller) transpose of x.
Result transpose_of_broadcast(Builder& b, const Node& node) {
  const Node inner = operand(b, node, 0);
  if (inner.op != &ops::broadcast) return std::nullopt;
  const Ints& permutation = node.attrs.as<TransposeAttrs>().permutation;
  const BroadcastAttrs& from = inner.attrs.as<BroadcastAttrs>();
  BroadcastAttrs to;
  to.shape = node.type.tensor().shape;
  TransposeAttrs small;
  for (size_t i = 0; i < permutation.size(); ++i) {
    auto found = std::find(from.dims.begin(), from.dims.end(), permutation[i]);
    if (found == from.dims.end()) continue;
    small.permutation.push_back(found - from.dims.begin());
    to.dims.push_back(static_cast<int64_t>(i));
  }
  ValueId value = inner.operands[0];
  if (!std::is_sorted(small.permutation.begin(), small.permutation.end())) {
    value = b.emit(ops::transpose, {value}, small);
  }
  return b.emit(ops::broadcast, {value}, to);
}

Result broadcast_of_broadcast(Builder& b, const Node& node) {
  const Node inner = operand(b, node, 0);
  if (inner.op != &ops::broadcast) return std::nullopt;
  BroadcastAttrs to = node.attrs.as<BroadcastAttrs>();
  Ints dims;
  for (int64_t d : inner.attrs.as<BroadcastAttrs>().dims) {
    dims.push_back(to.dims[static_cast<size_t>(d)]);
  }
  to.dims = dims;
  return b.emit(ops::broadcast, {inner.operands[0]}, to);
}

/// What is repeated along one dimension after another, which are joined with what they repeat, is
/// repeated along all of them at once.
Result broadcast_of_repeated(Builder& b, const Node& node) {
  const Node joined = operand(b, node, 0);
  if (joined.op != &ops::reshape || operand(b, joined, 0).op != &ops::broadcast) {
    return std::nullopt;
  }
  const Shape& parts = b.type(joined.operands[0]).tensor().shape;
  const Shape& whole = joined.type.tensor().shape;
  const std::optional<std::vector<DimensionGroup>> groups = groups_of(parts, whole);
  if (!groups) return std::nullopt;
  const BroadcastAttrs& from = node.attrs.as<BroadcastAttrs>();
  BroadcastAttrs to;
  size_t next = 0;  // of the result's dimensions
  for (size_t d = 0; d < groups->size(); ++d) {
    const auto place = static_cast<size_t>(from.dims[d]);
    const bool kept = (*groups)[d].to.size() == 1 && from.shape[place] == whole[d];
    if (!kept) return std::nullopt;
    for (; next < place; ++next) to.shape.push_back(from.shape[next]);
    for (const size_t part : (*groups)[d].from) {
      to.dims.push_back(static_cast<int64_t>(to.shape.size()));
      to.shape.push_back(parts[part]);
    }
    ++next;
  }
  for (; next < from.shape.size(); ++next) to.shape.push_back(from.shape[next]);
  const ValueId wide = b.emit(ops::broadcast, {joined.operands[0]}, to);
  return b.emit(ops::reshape, {wide}, ReshapeAttrs{from.shape});
}

/// An identity broadcast: same shape, hence the operand itself.
Result identity_broadcast(Builder& b, const Node& node) { return same_shape_is_operand(b, node); }

Result whole_slice(Builder& b, const Node& node) { return same_shape_is_operand(b, node); }

Result empty_pad(Builder& b, const Node& node) {
  const PadAttrs& attrs = node.attrs.as<PadAttrs>();
  const auto zero = [](const Dims& dims) {
    return std::all_of(dims.begin(), dims.end(), [](const Dim& d) { return d == Dim(0); });
  };
  return zero(attrs.low) && zero(attrs.high) ? same_shape_is_operand(b, node) : std::nullopt;
}

Result single_concat(Builder&, const Node& node) {
  return node.operands.size() == 1 ? Result(node.operands[0]) : std::nullopt;
}

Result same_cast(Builder& b, const Node& node) { return same_shape_is_operand(b, node); }

/// One value is converted in place of many equal ones, such as the zero points of channels.
Result cast_of_splat(Builder& b, const Node& node) {
  const Literal* constant = constant_of(b, node.operands[0]);
  if (!constant || constant->element_count() < 2) return std::nullopt;
  if (!constant->is_splat(constant->as_double(0))) return std::nullopt;
  const auto size = static_cast<size_t>(byte_size(constant->element()));
  const std::span<const std::byte> first = constant->bytes().first(size);
  const Literal one(constant->element(), {}, std::vector<std::byte>(first.begin(), first.end()));
  return b.emit(ops::broadcast, {b.emit(ops::cast, {b.constant(one)}, node.attrs)},
                BroadcastAttrs{node.type.tensor().shape, {}});
}

/// What is converted by way of an integer type that holds it is converted at once, and what is
/// converted to a wider float and back not at all.
Result cast_of_wider(Builder& b, const Node& node) {
  const Node& inner = operand(b, node, 0);
  if (inner.op != &ops::cast) return std::nullopt;
  const ElementType first = b.tensor_type(inner.operands[0]).element,
                    wider = inner.type.tensor().element;
  if (node.type.tensor().element == first && is_float(first) && is_float(wider) &&
      byte_size(wider) > byte_size(first)) {
    return inner.operands[0];
  }
  const std::optional<ValueRange> from = range_of(b.tensor_type(inner.operands[0]).element);
  const std::optional<ValueRange> through = range_of(inner.type.tensor().element);
  if (!from || !through || !through->contains(*from)) return std::nullopt;
  return b.emit(ops::cast, {inner.operands[0]}, node.attrs);
}

/// What is converted to floats and, however rounded, back.
Result cast_of_whole(Builder& b, const Node& node) {
  const Node inner = operand(b, node, 0);
  if (inner.op != &ops::cast || !is_exact_float(b, inner)) return std::nullopt;
  const std::optional<ValueRange> to = range_of(node.type.tensor().element);
  if (!to || !to->contains(*range_of(b.tensor_type(inner.operands[0]).element))) {
    return std::nullopt;
  }
  return b.emit(ops::cast, {inner.operands[0]}, CastAttrs{node.type.tensor().element});
}

/// What is converted to a narrower type is so before it is repeated: less is converted and moved.
Result cast_of_repeated(Builder& b, const Node& node) {
  const Node joined = operand(b, node, 0);
  if (joined.op != &ops::reshape) return std::nullopt;
  const Node spread = operand(b, joined, 0);
  const ElementType from = joined.type.tensor().element, to = node.type.tensor().element;
  if (spread.op != &ops::broadcast || byte_size(to) >= byte_size(from)) return std::nullopt;
  const ValueId narrow = b.emit(ops::cast, {spread.operands[0]}, node.attrs);
  return b.emit(ops::reshape, {b.emit(ops::broadcast, {narrow}, spread.attrs)}, joined.attrs);
}

/// Conversion to integers saturates, NaN gives 0 either way.
Result cast_of_clamp(Builder& b, const Node& node) {
  const Node& inner = operand(b, node, 0);
  const std::optional<ValueRange> range = range_of(node.type.tensor().element);
  if (inner.op != &ops::clamp || !range || !is_float(inner.type.tensor().element)) {
    return std::nullopt;
  }
  const std::optional<double> low = splat_of(b, inner.operands[1]);
  const std::optional<double> high = splat_of(b, inner.operands[2]);
  if (!low || !high || *low > range->low || *high < range->high) return std::nullopt;
  return b.emit(ops::cast, {inner.operands[0]}, node.attrs);
}

Result double_negation(Builder& b, const Node& node) {
  const Node& inner = operand(b, node, 0);
  return inner.op == node.op ? Result(inner.operands[0]) : std::nullopt;
}

Result idempotent(Builder& b, const Node& node) {
  return operand(b, node, 0).op == node.op ? Result(node.operands[0]) : std::nullopt;
}

Result get_of_tuple(Builder& b, const Node& node) {
  const Node& inner = operand(b, node, 0);
  if (inner.op != &ops::tuple) return std::nullopt;
  return inner.operands[static_cast<size_t>(node.attrs.as<GetAttrs>().index)];
}

/// x - c is x + (-c) for a constant c: gives the scale and shift rules one form to look for.
Result subtract_constant(Builder& b, const Node& node) {
  if (!is_float(node.type.tensor().element)) return std::nullopt;
  const Node right = operand(b, node, 1);
  if (right.op == &ops::constant) {
    ValueId negated = b.emit(ops::neg, {node.operands[1]});
    return b.emit(ops::add, {node.operands[0], negated});
  }
  if (right.op == &ops::broadcast && constant_of(b, right.operands[0])) {
    ValueId negated = b.emit(ops::neg, {right.operands[0]});
    ValueId wide = b.emit(ops::broadcast, {negated}, right.attrs);
    return b.emit(ops::add, {node.operands[0], wide});
  }
  return std::nullopt;
}

/// x / c is x * (1 / c) for a constant c of which nothing is subnormal: rounded twice, but a
/// division costs what ten multiplications cost.
Result divide_by_constant(Builder& b, const Node& node) {
  const ElementType element = node.type.tensor().element;
  if (element != ElementType::f32 && element != ElementType::f64) return std::nullopt;
  const Node right = operand(b, node, 1);
  const bool wide = right.op == &ops::broadcast;
  const ValueId divisor = wide ? right.operands[0] : node.operands[1];
  const Literal* c = constant_of(b, divisor);
  if (!c || constant_of(b, node.operands[0])) return std::nullopt;
  const double limit = element == ElementType::f32 ? 0x1p125 : 0x1p1020;
  std::vector<double> inverses;
  for (int64_t i = 0; i < c->element_count(); ++i) {
    const double size = std::abs(c->as_double(i));
    if (!(size <= limit && size >= 1 / limit)) return std::nullopt;
    inverses.push_back(1 / c->as_double(i));
  }
  ValueId inverse = b.constant(Literal::from_doubles(element, c->shape(), inverses));
  if (wide) inverse = b.emit(ops::broadcast, {inverse}, right.attrs);
  return b.emit(ops::mul, {node.operands[0], inverse});
}

/// One elementwise operation on two broadcasts with equal attributes, or of a scalar and a tensor,
/// is done on the small operands.
Result narrow_binary(Builder& b, const Node& node) {
  const Node left = operand(b, node, 0), right = operand(b, node, 1);
  if (left.op != &ops::broadcast || right.op != &ops::broadcast) return std::nullopt;
  std::vector<ValueId> small{left.operands[0], right.operands[0]};
  const TensorType types[] = {b.tensor_type(small[0]), b.tensor_type(small[1])};
  const size_t larger = types[0].rank() > 0 ? 0 : 1;
  const bool with_scalar = types[larger].rank() > 0 && types[1 - larger].rank() == 0;
  if (with_scalar) {
    const BroadcastAttrs like{types[larger].shape, {}};
    small[1 - larger] = b.emit(ops::broadcast, {small[1 - larger]}, like);
  } else if (!(left.attrs == right.attrs) || !(types[0].shape == types[1].shape)) {
    return std::nullopt;
  }
  const ValueId result = b.emit(*node.op, small, node.attrs);
  return b.emit(ops::broadcast, {result}, larger == 0 ? left.attrs : right.attrs);
}

/// A factor that is the same along what is contracted goes in front of the sum: what it meets is
/// added up first. Behind the mean over positions every example's gradient is such a factor.
Result contract_broadcast(Builder& b, const Node& node) {
  const DotGeneralAttrs& attrs = node.attrs.as<DotGeneralAttrs>();
  if (!is_float(node.type.tensor().element)) return std::nullopt;
  for (const size_t side : {size_t{0}, size_t{1}}) {
    const Node wide = operand(b, node, side);
    if (wide.op != &ops::broadcast) continue;
    const BroadcastAttrs& spread = wide.attrs.as<BroadcastAttrs>();
    const Ints& own = side == 0 ? attrs.lhs_contract : attrs.rhs_contract;
    const Ints& other = side == 0 ? attrs.rhs_contract : attrs.lhs_contract;
    Ints gone, summed;
    for (size_t i = 0; i < own.size(); ++i) {
      if (std::find(spread.dims.begin(), spread.dims.end(), own[i]) != spread.dims.end()) continue;
      gone.push_back(own[i]);
      summed.push_back(other[i]);
    }
    // A product without a sum is another operation.
    if (gone.empty() || gone.size() == own.size()) continue;
    BroadcastAttrs narrow{{}, without(spread.dims, gone)};
    for (size_t d = 0; d < spread.shape.size(); ++d) {
      if (std::find(gone.begin(), gone.end(), static_cast<int64_t>(d)) == gone.end()) {
        narrow.shape.push_back(spread.shape[d]);
      }
    }
    std::sort(summed.begin(), summed.end());
    ValueId operands[2];
    operands[side] = b.emit(ops::broadcast, {wide.operands[0]}, narrow);
    operands[1 - side] =
        b.emit(ops::reduce, {node.operands[1 - side]}, ReduceAttrs{Reduction::sum, summed});
    const Ints& lhs_gone = side == 0 ? gone : summed;
    const Ints& rhs_gone = side == 0 ? summed : gone;
    return b.emit(
        ops::dot_general, {operands[0], operands[1]},
        DotGeneralAttrs{without(attrs.lhs_batch, lhs_gone), without(attrs.rhs_batch, rhs_gone),
                        without(attrs.lhs_contract, lhs_gone),
                        without(attrs.rhs_contract, rhs_gone)});
  }
  return std::nullopt;
}

/// Quantised weights that blocks of what is contracted have a zero point of: it is taken off each
/// block's sum instead of each of its weights, which then stay as narrow as they are.
Result contract_zero_points(Builder& b, const Node& node) {
  const DotGeneralAttrs& attrs = node.attrs.as<DotGeneralAttrs>();
  const auto is_wide = [&](const Node& zero, const Node& scale, const Ints& contracted) {
    if (zero.op != &ops::broadcast || scale.op != &ops::broadcast) return false;
    if (!(zero.attrs == scale.attrs) || !(b.type(zero.operands[0]) == b.type(scale.operands[0])))
      return false;
    const Ints& dims = zero.attrs.as<BroadcastAttrs>().dims;
    const auto varies = [&](int64_t axis) { return std::ranges::find(dims, axis) != dims.end(); };
    return std::ranges::any_of(contracted, varies) && !std::ranges::all_of(contracted, varies);
  };
  for (const size_t side : {size_t{0}, size_t{1}}) {
    const Node scaled = operand(b, node, side);
    if (scaled.op != &ops::mul) continue;
    for (const size_t i : {size_t{0}, size_t{1}}) {
      const Node sum = operand(b, scaled, i), scale = operand(b, scaled, 1 - i);
      if (sum.op != &ops::sub && sum.op != &ops::add) continue;
      const Node weights = operand(b, sum, 0), zero = operand(b, sum, 1);
      if (weights.op != &ops::cast ||
          !is_wide(zero, scale, side == 0 ? attrs.lhs_contract : attrs.rhs_contract)) {
        continue;
      }
      const ValueId small = b.emit(ops::mul, {zero.operands[0], scale.operands[0]});
      std::vector<ValueId> first = node.operands, second = node.operands;
      first[side] = b.emit(ops::mul, {sum.operands[0], scaled.operands[1 - i]});
      second[side] = b.emit(ops::broadcast, {small}, scale.attrs);
      const ValueId product = b.emit(ops::dot_general, first, node.attrs);
      return b.emit(*sum.op, {product, b.emit(ops::dot_general, second, node.attrs)});
    }
  }
  return std::nullopt;
}

Result narrow_unary(Builder& b, const Node& node) {
  const Node inner = operand(b, node, 0);
  if (inner.op != &ops::broadcast || !constant_of(b, inner.operands[0])) return std::nullopt;
  ValueId small = b.emit(*node.op, {inner.operands[0]}, node.attrs);
  return b.emit(ops::broadcast, {small}, inner.attrs);
}

const AlgebraicRule kRules[] = {
    {"x + 0 = x", &ops::add, add_zero},
    {"x - 0 = x", &ops::sub, sub_zero},
    {"x * 1 = x", &ops::mul, mul_one},
    {"x / 1 = x", &ops::div, div_one},
    {"x - c = x + (-c)", &ops::sub, subtract_constant},
    {"x / c = x * (1 / c), rounded twice", &ops::div, divide_by_constant, false},
    {"f(wide(a), wide(b)) = wide(f(a, b))", &ops::add, narrow_binary},
    {"f(wide(a), wide(b)) = wide(f(a, b))", &ops::sub, narrow_binary},
    {"f(wide(a), wide(b)) = wide(f(a, b))", &ops::mul, narrow_binary},
    {"f(wide(a), wide(b)) = wide(f(a, b))", &ops::div, narrow_binary},
    {"dot(x, wide(y)) = dot(sum(x), y)", &ops::dot_general, contract_broadcast, false},
    {"dot(x, (q + wide(z)) * wide(s)) = dot(x, q * wide(s)) + dot(x, wide(z * s))",
     &ops::dot_general, contract_zero_points, false},
    {"f(wide(c)) = wide(f(c))", &ops::sqrt, narrow_unary},
    {"f(wide(c)) = wide(f(c))", &ops::neg, narrow_unary},
    {"f(wide(c)) = wide(f(c))", &ops::cast, narrow_unary},
    {"reshape to the same shape", &ops::reshape, same_shape_is_operand},
    {"reshape(reshape(x))", &ops::reshape, reshape_of_reshape},
    {"identity transpose", &ops::transpose, identity_transpose},
    {"transpose(transpose(x))", &ops::transpose, transpose_of_transpose},
    {"transpose(broadcast(x)) = broadcast(transpose(x))", &ops::transpose, transpose_of_broadcast},
    {"broadcast to the same shape", &ops::broadcast, identity_broadcast},
    {"broadcast(broadcast(x))", &ops::broadcast, broadcast_of_broadcast},
    {"wide(reshape(wide(x))) = reshape(wide(wide(x)))", &ops::broadcast, broadcast_of_repeated},
    {"slice of everything", &ops::slice, whole_slice},
    {"pad by nothing", &ops::pad, empty_pad},
    {"concat of one", &ops::concat, single_concat},
    {"cast to the same type", &ops::cast, same_cast},
    {"cast(c) of equal elements = wide(cast(c))", &ops::cast, cast_of_splat},
    {"cast(cast(x)) by way of more values", &ops::cast, cast_of_wider},
    {"cast(clamp(x)) to no more values", &ops::cast, cast_of_clamp},
    {"cast(cast(x)) by way of floats", &ops::cast, cast_of_whole},
    {"narrower(reshape(wide(x))) = reshape(wide(narrower(x)))", &ops::cast, cast_of_repeated},
    {"-(-x) = x", &ops::neg, double_negation},
    {"not(not(x)) = x", &ops::bit_not, double_negation},
    {"relu(relu(x)) = relu(x)", &ops::relu, idempotent},
    {"abs(abs(x)) = abs(x)", &ops::abs, idempotent},
    {"get(tuple(...), i)", &ops::get, get_of_tuple},
};

}  // namespace

std::span<const AlgebraicRule> algebraic_rules() {
  static const std::vector<AlgebraicRule> kAll = [] {
    std::vector<AlgebraicRule> all(std::begin(kRules), std::end(kRules));
    for (const std::span<const AlgebraicRule> more :
         {window_rules(), one_hot_rules(), movement_rules()}) {
      all.insert(all.end(), more.begin(), more.end());
    }
    return all;
  }();
  return kAll;
}

}  // namespace backcast
