// Lowering of reductions along whole axes, running sums and top-k.
#include <fmt/format.h>

#include "ir/ops/ops.h"
#include "passes/lower/rule_table.h"

namespace backcast {

using loop::Expr;
using loop::Op;
using loop::Stmt;
using Indices = std::vector<Expr>;

loop::Accumulator reduction_accumulator(const std::string& name, Reduction kind, loop::Type type,
                                        Expr value) {
  switch (kind) {
    case Reduction::sum:
      return {name, type, loop::Combine::sum, loop::constant(type, 0), value};
    case Reduction::prod:
      return {name, type, loop::Combine::prod, loop::constant(type, 1), value};
    case Reduction::max:
      return {name, type, loop::Combine::max, lowest(type), value};
    case Reduction::min:
      return {name, type, loop::Combine::min, highest(type), value};
    case Reduction::bit_and: {
      bool is_bool = type.scalar == loop::Scalar::boolean;
      Expr ones = loop::int_constant(type, is_bool ? 1 : -1);
      return {name, type, loop::Combine::bit_and, ones, value};
    }
    case Reduction::bit_or:
      return {name, type, loop::Combine::bit_or, loop::constant(type, 0), value};
  }
  __builtin_unreachable();
}

namespace {

void lower_reduce(KernelBuilder& k) {
  const ReduceAttrs& attrs = k.attrs<ReduceAttrs>();
  loop::Definition definition;
  definition.axes = KernelBuilder::axes(k.result().shape);
  Indices result = KernelBuilder::vars(definition.axes);
  Indices from(k.operand(0).shape.size());
  for (int64_t axis : attrs.axes) {
    std::string name = fmt::format("k{}", axis);
    definition.reduce_axes.push_back(
        {name, loop::expr_of(k.operand(0).shape[static_cast<size_t>(axis)])});
    from[static_cast<size_t>(axis)] = loop::var(name);
  }
  size_t next = 0;
  for (Expr& index : from) {
    if (!index) index = result[next++];
  }
  loop::Type type = compute_type(k.operand(0).element);
  definition.accumulators = {reduction_accumulator("acc", attrs.kind, type, k.read(0, from))};
  definition.outputs = {{"out0", result, k.stored(loop::var("acc", type))}};
  k.define(std::move(definition));
}

/// Two accumulators, the best value and where it was; a NaN beats every number.
void lower_arg_reduce(KernelBuilder& k) {
  const ArgReduceAttrs& attrs = k.attrs<ArgReduceAttrs>();
  loop::Definition definition;
  definition.axes = KernelBuilder::axes(k.result().shape);
  Indices result = KernelBuilder::vars(definition.axes);
  size_t axis = static_cast<size_t>(attrs.axis);
  Expr position = loop::var("k");
  definition.reduce_axes = {{"k", loop::expr_of(k.operand(0).shape[axis])}};
  Indices from = result;
  from.insert(from.begin() + attrs.axis, position);

  loop::Type type = compute_type(k.operand(0).element);
  // Positions that fit beside f32 in the lanes of a vector.
  const Dim& extent = k.operand(0).shape[axis];
  const bool fits = extent.is_constant() && extent.constant() <= INT32_MAX;
  loop::Type index_type{fits ? loop::Scalar::i32 : loop::Scalar::i64, 1};
  Expr best = loop::var("best", type), where = loop::var("where", index_type);
  Expr value = k.read(0, from);
  bool is_max = attrs.kind == Reduction::max;
  Op op = is_max ? (attrs.last ? Op::ge : Op::gt) : (attrs.last ? Op::le : Op::lt);
  Expr better = loop::binary(op, value, best);
  // The first element wins against the starting value, whatever it is.
  better = loop::binary(Op::bit_or, better, loop::binary(Op::eq, position, Expr(0)));
  if (loop::is_float(type.scalar)) {
    Expr best_is_number = loop::binary(Op::eq, loop::unary(Op::is_nan, best),
                                       loop::int_constant({loop::Scalar::boolean, 1}, 0));
    better = loop::binary(Op::bit_or, better, loop::unary(Op::is_nan, value) && best_is_number);
  }
  definition.accumulators = {
      {"best", type, loop::Combine::general, is_max ? lowest(type) : highest(type),
       loop::select(better, value, best)},
      {"where", index_type, loop::Combine::general, loop::int_constant(index_type, 0),
       loop::select(better, loop::cast(index_type, position), where)}};
  definition.outputs = {{"out0", result, loop::cast({loop::Scalar::i64, 1}, where)}};
  k.define(std::move(definition));
}

/// Loops over `shape` without `axis` around `body`, which gets the indices with `inner` at `axis`.
Stmt loops_around(const Shape& shape, size_t axis, Stmt body) {
  for (size_t d = shape.size(); d-- > 0;) {
    if (d == axis) continue;
    body = loop::for_loop(fmt::format("i{}", d), Expr(0), loop::expr_of(shape[d]), body);
  }
  return body;
}

Indices row_indices(const Shape& shape, size_t axis, Expr inner) {
  Indices indices;
  for (size_t d = 0; d < shape.size(); ++d) {
    indices.push_back(d == axis ? inner : loop::var(fmt::format("i{}", d)));
  }
  return indices;
}

void lower_cumulative(KernelBuilder& k) {
  const CumulativeAttrs& attrs = k.attrs<CumulativeAttrs>();
  const Shape& shape = k.result().shape;
  size_t axis = static_cast<size_t>(attrs.axis);
  loop::Type type = compute_type(k.result().element);
  loop::Type stored_type{loop::scalar_of(k.result().element), 1};
  Expr extent = loop::expr_of(shape[axis]);
  Expr step = loop::var("step");
  Expr at = attrs.reverse ? extent - Expr(1) - step : step;
  Expr flat = loop::flat_index(shape, row_indices(shape, axis, at));
  Expr running = loop::load(type, "running", Expr(0));
  Expr value = loop::load(stored_type, "a0", flat);
  if (!(stored_type == type)) value = loop::cast(type, value);
  Op op = attrs.kind == Reduction::prod ? Op::mul : Op::add;
  Stmt update = loop::store("running", Expr(0), loop::binary(op, running, value));
  Stmt write = loop::store("out0", flat, k.stored(running));
  std::vector<Stmt> order =
      attrs.exclusive ? std::vector<Stmt>{write, update} : std::vector<Stmt>{update, write};
  Expr init = loop::constant(type, attrs.kind == Reduction::prod ? 1 : 0);
  Stmt row = loop::block({loop::alloc("running", type, Expr(1), loop::Memory::registers),
                          loop::store("running", Expr(0), init),
                          loop::for_loop("step", Expr(0), extent, loop::block(order))});
  k.statement(loops_around(shape, axis, row));
}

/// For each place of the result the best element that comes after the one placed before it in the
/// order (value, then position): n·k comparisons and no scratch memory.
void lower_top_k(KernelBuilder& k) {
  const TopKAttrs& attrs = k.attrs<TopKAttrs>();
  const Shape& shape = k.operand(0).shape;
  const Shape& result = k.result().shape;
  size_t axis = static_cast<size_t>(attrs.axis);
  loop::Type type = compute_type(k.operand(0).element);
  loop::Type stored_type{loop::scalar_of(k.operand(0).element), 1};
  loop::Type i64{loop::Scalar::i64, 1};
  Expr place = loop::var("place"), at = loop::var("at");
  const auto reg = [](const std::string& name, loop::Type t) {
    return loop::load(t, name, Expr(0));
  };
  const auto set = [](const std::string& name, Expr value) {
    return loop::store(name, Expr(0), std::move(value));
  };
  Expr value = loop::load(stored_type, "a0", loop::flat_index(shape, row_indices(shape, axis, at)));
  if (!(stored_type == type)) value = loop::cast(type, value);
  Expr x = loop::var("x", type), here = loop::cast(i64, at);
  Op better = attrs.largest ? Op::gt : Op::lt;
  const auto both = [](Expr a, Expr b) { return loop::binary(Op::bit_and, a, b); };
  const auto either = [](Expr a, Expr b) { return loop::binary(Op::bit_or, a, b); };
  Expr last = reg("last", type), last_at = reg("last_at", i64);
  Expr best = reg("best", type), best_at = reg("best_at", i64);
  Expr minus_one = loop::int_constant(i64, -1);
  Expr first_place = loop::binary(Op::eq, place, Expr(0));
  Expr after_last =
      either(first_place,
             either(loop::binary(better, last, x),
                    both(loop::binary(Op::eq, x, last), loop::binary(Op::gt, here, last_at))));
  Expr beats = either(loop::binary(Op::eq, best_at, minus_one), loop::binary(better, x, best));
  Stmt scan = loop::for_loop(
      "at", Expr(0), loop::expr_of(shape[axis]),
      loop::block({loop::let("x", value),
                   loop::if_branch(both(after_last, beats),
                                   loop::block({set("best", x), set("best_at", here)}))}));
  Expr flat = loop::flat_index(result, row_indices(result, axis, place));
  Stmt places = loop::for_loop(
      "place", Expr(0), loop::expr_of(result[axis]),
      loop::block({set("best", loop::constant(type, 0)), set("best_at", minus_one), scan,
                   loop::store("out0", flat, k.stored(best, 0)), loop::store("out1", flat, best_at),
                   set("last", best), set("last_at", best_at)}));
  std::vector<Stmt> row;
  for (const char* name : {"best", "last"}) {
    row.push_back(loop::alloc(name, type, Expr(1), loop::Memory::registers));
    row.push_back(loop::alloc(fmt::format("{}_at", name), i64, Expr(1), loop::Memory::registers));
  }
  row.push_back(set("last", loop::constant(type, 0)));
  row.push_back(set("last_at", minus_one));
  row.push_back(places);
  k.statement(loops_around(shape, axis, loop::block(row)));
}

const LowerRow kRows[] = {
    {&ops::reduce, lower_reduce},
    {&ops::arg_reduce, lower_arg_reduce},
    {&ops::cumulative, lower_cumulative},
    {&ops::top_k, lower_top_k},
};

}  // namespace

std::span<const LowerRow> reduction_lowering() { return kRows; }

}  // namespace backcast
