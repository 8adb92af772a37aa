// Reductions along axes, arg-reductions and running sums.
#include "frontend/operators.h"
#include "frontend/rules/families.h"
#include "ir/graph/error.h"

namespace backcast {
namespace {

using Reducer = ValueId (*)(Emitter&, ValueId, const Ints&);

ValueId sum(Emitter& e, ValueId x, const Ints& axes) { return e.reduce(Reduction::sum, x, axes); }

ValueId product(Emitter& e, ValueId x, const Ints& axes) {
  return e.reduce(Reduction::prod, x, axes);
}

/// The larger of truth values is their disjunction.
template <Reduction kind>
ValueId extreme(Emitter& e, ValueId x, const Ints& axes) {
  const bool boolean = e.element(x) == ElementType::boolean;
  const Reduction logic = kind == Reduction::max ? Reduction::bit_or : Reduction::bit_and;
  return e.reduce(boolean ? logic : kind, x, axes);
}

ValueId mean(Emitter& e, ValueId x, const Ints& axes) { return e.mean(x, axes); }

ValueId sum_of_squares(Emitter& e, ValueId x, const Ints& axes) {
  return sum(e, e.mul(x, x), axes);
}

ValueId l1(Emitter& e, ValueId x, const Ints& axes) { return sum(e, e.unary(ops::abs, x), axes); }

ValueId l2(Emitter& e, ValueId x, const Ints& axes) {
  const ValueId squares = sum_of_squares(e, x, axes);
  if (is_float(e.element(x))) return e.unary(ops::sqrt, squares);
  return e.cast(e.unary(ops::sqrt, e.cast(squares, ElementType::f64)), e.element(x));
}

ValueId log_sum(Emitter& e, ValueId x, const Ints& axes) {
  return e.unary(ops::log, sum(e, x, axes));
}

/// The maximum is taken out first; where it is infinite, 0 is.
ValueId log_sum_exp(Emitter& e, ValueId x, const Ints& axes) {
  const Shape before = e.shape(x);
  ValueId top = e.reduce(Reduction::max, x, axes);
  top = e.select(e.emit(ops::is_inf, {top}), e.like(top, 0), top);
  const ValueId centred = e.sub(x, e.keep_axes(top, before, axes));
  return e.add(e.unary(ops::log, sum(e, e.unary(ops::exp, centred), axes)), top);
}

/// All sets of `count` axes whose reduction gives the declared shape.
std::vector<Ints> candidates(const Shape& from, const Shape& to, size_t count, bool keepdims) {
  std::vector<Ints> result;
  if (from.size() > 16) return result;
  for (uint32_t set = 0; set < 1u << from.size(); ++set) {
    if (static_cast<size_t>(__builtin_popcount(set)) != count) continue;
    Shape reduced;
    Ints axes;
    for (size_t i = 0; i < from.size(); ++i) {
      const bool gone = (set >> i & 1) != 0;
      if (gone) axes.push_back(static_cast<int64_t>(i));
      if (!gone || keepdims) reduced.push_back(gone ? Dim(1) : from[i]);
    }
    if (reduced == to) result.push_back(axes);
  }
  return result;
}

/// The set of axes as a number, bit i for axis i, computed at run time from an axes input.
ValueId axes_as_bits(NodeContext& n, ValueId axes, int64_t rank) {
  std::vector<int64_t> powers;
  for (int64_t i = 0; i < rank; ++i) powers.push_back(int64_t{1} << i);
  const ValueId table = n.e.constant(Literal::from_ints({rank}, powers));
  const ValueId wrapped = n.e.wrap_negative(n.e.cast(axes, ElementType::i64), rank);
  return n.e.reduce(Reduction::sum, n.e.take(table, wrapped, 0), {0});
}

/// Axes that are only known at run time: every set that leads to the declared shape is computed,
/// and the right one selected.
ValueId reduce_run_time_axes(NodeContext& n, Reducer reducer, bool keepdims) {
  const std::optional<Shape> declared = n.declared(0);
  const Shape axes = n.shape(1);
  if (!declared || axes.size() != 1 || !axes[0].is_constant()) static_cast<void>(n.dims(1));
  const int64_t count = axes[0].constant();
  const std::vector<Ints> sets =
      candidates(n.shape(0), *declared, static_cast<size_t>(count), keepdims);
  if (sets.empty()) n.fail("no choice of axes gives the declared output shape");
  ValueId result, bits;
  for (const Ints& set : sets) {
    ValueId reduced = reducer(n.e, n.input(0), set);
    reduced = n.e.reshape(reduced, *declared);
    if (!result.valid()) {
      result = reduced;
      continue;
    }
    if (!bits.valid()) bits = axes_as_bits(n, n.input(1), n.rank(0));
    double code = 0;
    for (const int64_t axis : set) code += static_cast<double>(int64_t{1} << axis);
    result = n.e.select(n.e.compare(Comparison::eq, bits, code), reduced, result);
  }
  return result;
}

void reduce(NodeContext& n, Reducer reducer) {
  const ValueId x = n.input(0);
  const Shape before = n.shape(0);
  const bool keepdims = n.attr_int("keepdims", 1) != 0;
  Ints axes;
  if (n.has_attr("axes")) {
    axes = *n.attr_ints("axes");
  } else if (n.has(1)) {
    const bool none = n.shape(1).size() == 1 && n.shape(1)[0] == Dim(0);
    if (!none && !n.known_ints(1)) return n.result(reduce_run_time_axes(n, reducer, keepdims));
    if (!none) axes = n.ints(1);
  }
  axes = n.axes(axes, n.rank(0));
  const bool noop = n.attr_int("noop_with_empty_axes", 0) != 0;
  if (axes.empty() && !noop) axes = counting(n.rank(0));
  const ValueId reduced = reducer(n.e, x, axes);
  n.result(keepdims ? n.e.keep_axes(reduced, before, axes) : reduced);
}

template <Reducer reducer>
void reduce_with(NodeContext& n) {
  reduce(n, reducer);
}

template <Reduction kind>
void arg_reduce(NodeContext& n) {
  const int64_t axis = n.attr_axis("axis", 0, n.rank(0));
  n.result(n.e.arg_reduce(kind, n.input(0), axis, n.attr_int("select_last_index", 0) != 0,
                          n.attr_int("keepdims", 1) != 0));
}

/// An axis that is only known at run time: all of them are computed, and the right one selected.
template <Reduction kind>
void cumulative(NodeContext& n) {
  const bool exclusive = n.attr_int("exclusive", 0) != 0, reverse = n.attr_int("reverse", 0) != 0;
  const ValueId x = n.input(0);
  if (!(n.type(1).element_count() == Dim(1))) n.fail("input 1, the axis, has to be a scalar");
  const std::optional<Ints> known = n.known_ints(1);
  if (known) {
    const int64_t axis = n.axis((*known)[0], n.rank(0));
    return n.result(n.e.cumulative(kind, x, axis, exclusive, reverse));
  }
  const ValueId scalar = n.e.reshape(n.e.cast(n.input(1), ElementType::i64), {});
  const ValueId wanted = n.e.wrap_negative(scalar, n.rank(0));
  ValueId result = x;
  for (int64_t axis = 0; axis < n.rank(0); ++axis) {
    const ValueId along = n.e.cumulative(kind, x, axis, exclusive, reverse);
    const ValueId chosen = n.e.compare(Comparison::eq, wanted, static_cast<double>(axis));
    result = axis == 0 ? along : n.e.select(chosen, along, result);
  }
  n.result(result);
}

constexpr int64_t kNew = kNewestOpset;
#define BY_ATTRIBUTE "axes:I keepdims:i"
#define BY_INPUT "keepdims:i noop_with_empty_axes:i"
#define REDUCTION(name, reducer)                             \
  {name, 7, 17, 1, 1, reduce_with<reducer>, BY_ATTRIBUTE}, { \
    name, 18, kNew, 1, 2, reduce_with<reducer>, BY_INPUT     \
  }

const OperatorRule kRules[] = {
    {"ReduceSum", 7, 12, 1, 1, reduce_with<sum>, BY_ATTRIBUTE},
    {"ReduceSum", 13, kNew, 1, 2, reduce_with<sum>, BY_INPUT},
    REDUCTION("ReduceMean", mean),
    REDUCTION("ReduceMax", extreme<Reduction::max>),
    REDUCTION("ReduceMin", extreme<Reduction::min>),
    REDUCTION("ReduceProd", product),
    REDUCTION("ReduceSumSquare", sum_of_squares),
    REDUCTION("ReduceL1", l1),
    REDUCTION("ReduceL2", l2),
    REDUCTION("ReduceLogSum", log_sum),
    REDUCTION("ReduceLogSumExp", log_sum_exp),
    {"ArgMax", 7, 11, 1, 1, arg_reduce<Reduction::max>, "axis:i keepdims:i"},
    {"ArgMax", 12, kNew, 1, 1, arg_reduce<Reduction::max>, "axis:i keepdims:i select_last_index:i"},
    {"ArgMin", 7, 11, 1, 1, arg_reduce<Reduction::min>, "axis:i keepdims:i"},
    {"ArgMin", 12, kNew, 1, 1, arg_reduce<Reduction::min>, "axis:i keepdims:i select_last_index:i"},
    {"CumSum", 11, kNew, 2, 2, cumulative<Reduction::sum>, "exclusive:i reverse:i"},
    {"CumProd", 26, kNew, 2, 2, cumulative<Reduction::prod>, "exclusive:i reverse:i"},
};

}  // namespace

std::span<const OperatorRule> reduction_rules() { return kRules; }

}  // namespace backcast
