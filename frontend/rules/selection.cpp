// NonZero, Compress and Unique.
#include "frontend/rules/selection.h"

#include "frontend/operators.h"
#include "frontend/rules/families.h"
#include "ir/ops/ops.h"

namespace backcast {
namespace {

Dim elements_of(const Shape& shape) {
  return TensorType{ElementType::boolean, shape}.element_count();
}

ValueId flattened(Emitter& e, ValueId x) { return e.reshape(x, {elements_of(e.shape(x))}); }

/// Row d of the result are the places in dimension d.
void non_zero(NodeContext& n) {
  const Shape shape = n.shape(0);
  if (shape.empty()) n.fail("the input is a scalar; give it a dimension");
  ValueId mask = flattened(n.e, n.input(0));
  if (n.element(0) != ElementType::boolean) mask = n.e.compare(Comparison::ne, mask, 0.0);
  const ValueId places = true_places(n, mask, elements_of(shape));
  n.result(n.e.cast(n.e.transpose(coordinates(n.e, places, shape), {1, 0}), ElementType::i64));
}

void compress(NodeContext& n) {
  ValueId x = n.input(0);
  const int64_t axis = n.has_attr("axis") ? n.attr_axis("axis", 0, n.rank(0)) : 0;
  if (!n.has_attr("axis")) x = flattened(n.e, x);
  if (n.rank(1) != 1) n.fail("the condition has to be a vector");
  const Dim most = n.shape(1)[0], extent = n.e.extent(x, axis);
  const ValueId places = true_places(n, n.input(1), most);
  const std::optional<Ints> known = n.known_ints_of(places);
  const bool fits =
      !known ? (extent - most).range(n.ranges()).max >= 0
             : known->empty() || (extent.is_constant() && known->back() < extent.constant());
  if (!fits) n.fail("the condition is longer than the axis");
  n.result(take_known(n, x, places, axis));
}

/// Per row, how many rows are less, element by element from the first on: equal for equal rows.
ValueId ranks_of(NodeContext& n, ValueId rows) {
  const Shape shape = n.e.shape(rows);
  const Dim count = shape[0], width = shape[1];
  const TensorType rank{ElementType::i64, {count}}, column{n.e.element(rows), {count}};
  ScanAttrs attrs{.carries = 1, .xs = 1, .length = width};
  attrs.body = n.function(n.loc().node, {rank, column}, [&](Emitter& e, const auto& p) {
    const auto less = [&](Comparison direction, ValueId value) {
      return e.compare(direction, e.broadcast_in(value, {count, count}, {1}),
                       e.broadcast_in(value, {count, count}, {0}));
    };
    const ValueId tie =
        e.emit(ops::bit_and, {less(Comparison::eq, p[0]), less(Comparison::lt, p[1])});
    const ValueId before = e.emit(ops::bit_or, {less(Comparison::lt, p[0]), tie});
    const ValueId next = e.reduce(Reduction::sum, e.cast(before, ElementType::i64), {1});
    return e.emit(ops::tuple, {next});
  });
  const ValueId columns = n.e.transpose(rows, {1, 0});
  return n.e.get(
      n.e.emit(ops::scan, {n.e.dimension(width), n.e.filled(rank, 0), columns}, std::move(attrs)),
      0);
}

/// Sorting brings equal keys together; the first of each group, in the order of the operand or of
/// the keys, is what the results are taken from.
void unique(NodeContext& n) {
  Emitter& e = n.e;
  ValueId x = n.input(0);
  const bool has_axis = n.has_attr("axis");
  const int64_t axis = has_axis ? n.attr_axis("axis", 0, n.rank(0)) : 0;
  if (!has_axis) x = flattened(e, x);
  const Dim count = e.extent(x, axis);
  ValueId keys = x;
  if (e.rank(x) > 1) {
    Ints order{axis};
    for (int64_t i = 0; i < e.rank(x); ++i) {
      if (i != axis) order.push_back(i);
    }
    const ValueId rows = e.transpose(x, order);
    keys = ranks_of(n, e.reshape(rows, {count, Dim::floor_div(elements_of(e.shape(x)), count)}));
  }
  const bool sorted = n.attr_int("sorted", 1) != 0;
  const ValueId ordered = e.emit(ops::top_k, {keys}, TopKAttrs{count, 0, false});
  const ValueId place = e.positions({count}, 0);
  const TensorType places_type = e.type(place);
  const ValueId key = e.get(ordered, 0), from = e.cast(e.get(ordered, 1), places_type.element);
  const ValueId before = e.take(key, e.max(e.sub(place, 1.0), e.like(place, 0)), 0);
  const ValueId starts = e.emit(
      ops::bit_or, {e.compare(Comparison::ne, key, before), e.compare(Comparison::eq, place, 0.0)});
  const ValueId marks = e.cast(starts, places_type.element);
  const ValueId none = e.filled(places_type, 0);
  const ValueId firsts = put(e, none, from, marks, Combiner::assign);
  ValueId group = e.sub(e.cumulative(Reduction::sum, marks, 0, false, false), 1.0);
  if (!sorted) {
    // By group of keys, the first of the group in the operand, and its rank among these.
    const ValueId to = e.select(starts, group, e.highest(places_type));
    const ValueId first = put(e, none, to, from, Combiner::assign);
    const ValueId rank = e.cumulative(Reduction::sum, firsts, 0, true, false);
    group = e.take(e.take(rank, first, 0), group, 0);
  }
  const ValueId chosen = sorted ? e.take(from, true_places(n, starts, count), 0)
                                : true_places(n, e.compare(Comparison::ne, firsts, 0.0), count);
  n.set(0, e.take(x, chosen, axis));
  const auto set = [&](size_t output, ValueId value) {
    n.set(output, e.cast(value, ElementType::i64));
  };
  if (n.wants(1)) set(1, chosen);
  if (n.wants(2)) set(2, put(e, none, from, group, Combiner::assign));
  if (n.wants(3)) {
    const ValueId sizes = put(e, none, group, e.filled(places_type, 1), Combiner::add);
    set(3, e.slice_axis(sizes, 0, 0, e.shape(chosen)[0]));
  }
}

constexpr int64_t kNew = kNewestOpset;

const OperatorRule kRules[] = {
    {"NonZero", 9, kNew, 1, 1, non_zero},
    {"Compress", 9, kNew, 2, 2, compress, "axis:i"},
    {"Unique", 11, kNew, 1, 1, unique, "axis:i sorted:i"},
};

}  // namespace

ValueId put(Emitter& e, ValueId x, ValueId places, ValueId updates, Combiner combiner) {
  ScatterAttrs attrs;
  attrs.combiner = combiner;
  attrs.inserted_window_dims = attrs.scatter_dims_to_operand_dims = {0};
  attrs.index_vector_dim = 1;
  return e.emit(ops::scatter, {x, e.unsqueeze(places, 1), updates}, std::move(attrs));
}

ValueId true_places(NodeContext& n, ValueId mask, const Dim& most) {
  Emitter& e = n.e;
  const Shape all = e.shape(mask);
  if (const std::optional<Literal> known = n.known_literal_of(mask)) {
    Ints places;
    for (int64_t i = 0; i < known->element_count(); ++i) {
      if (known->as_int(i) != 0) places.push_back(i);
    }
    const int64_t count = static_cast<int64_t>(places.size());
    return e.constant(Literal::from_ints({count}, places));
  }
  const ValueId here = e.positions(all, 0);
  const ElementType element = e.element(here);
  const ValueId counted = e.cast(mask, element);
  const ValueId before = e.cumulative(Reduction::sum, counted, 0, true, false);
  const ValueId to = e.select(mask, before, e.highest(e.type(before)));  // beyond the end
  const ValueId places = put(e, e.filled({element, {most}}, 0), to, here, Combiner::assign);
  const ValueId count = e.reduce(Reduction::sum, counted, {0});
  return n.prefix(places, e.cast(count, ElementType::i64), 0);
}

ValueId coordinates(Emitter& e, ValueId places, const Shape& shape) {
  std::vector<ValueId> parts(shape.size());
  Dim stride = 1;
  for (size_t d = shape.size(); d-- > 0;) {
    const auto divisor = [&](const Dim& by) {
      return e.broadcast_to(e.cast(e.dimension(by), e.element(places)), e.shape(places));
    };
    ValueId part = d + 1 < shape.size() ? e.div(places, divisor(stride)) : places;
    if (d > 0) part = e.emit(ops::rem, {part, divisor(shape[d])});
    parts[d] = e.unsqueeze(part, 1);
    stride = stride * shape[d];
  }
  return e.concat(parts, 1);
}

std::span<const OperatorRule> selection_rules() { return kRules; }

}  // namespace backcast
