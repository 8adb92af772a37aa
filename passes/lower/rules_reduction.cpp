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

/// Running sums, side by side where the axis is not the last.
void lower_cumulative(KernelBuilder& k) {
  const CumulativeAttrs& attrs = k.attrs<CumulativeAttrs>();
  const Shape& whole = k.result().shape;
  const auto axis = whole.begin() + attrs.axis;
  const Dim inner = TensorType{k.result().element, {axis + 1, whole.end()}}.element_count();
  const Dim outer_count = TensorType{k.result().element, {whole.begin(), axis}}.element_count();
  const Shape shape{outer_count, *axis, inner};
  loop::Type type = compute_type(k.result().element);
  loop::Type stored_type{loop::scalar_of(k.result().element), 1};
  Expr extent = loop::expr_of(shape[1]);
  Expr step = loop::var("step"), outer = loop::var("i"), lane = loop::var("j");
  Expr at = attrs.reverse ? extent - Expr(1) - step : step;
  Expr flat = loop::flat_index(shape, {outer, at, inner == Dim(1) ? Expr(0) : lane});
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
  if (!(inner == Dim(1))) {
    row = loop::for_loop("j", Expr(0), loop::expr_of(inner), row, loop::ForKind::vectorized);
  }
  k.statement(loop::for_loop("i", Expr(0), loop::expr_of(shape[0]), row));
}

/// The results of a row of top_k, while they are found, as a heap: the worst of the best so far on
/// top. At the end it is sorted in place (Williams, "Algorithm 232: heapsort", 1964). One
/// comparison for most elements, log k for the others, and no scratch memory.
class BestOfRow {
 public:
  explicit BestOfRow(const KernelBuilder& k)
      : k_(k),
        axis_(static_cast<size_t>(k.attrs<TopKAttrs>().axis)),
        better_(k.attrs<TopKAttrs>().largest ? Op::gt : Op::lt),
        type_(compute_type(k.operand(0).element)),
        stored_{loop::scalar_of(k.operand(0).element), 1},
        count_(loop::expr_of(k.result().shape[axis_])) {}

  /// Requires: at least one element is wanted.
  Stmt find() const {
    const Expr extent = loop::expr_of(k_.operand(0).shape[axis_]);
    const Expr half = loop::floor_div(count_, 2), rest = extent - count_;
    const Expr fill = loop::var("fill"), step = loop::var("step"), at = step - half + count_;
    const Expr last = half + extent - Expr(1) - step;
    std::vector<Stmt> statements;
    for (const char* name : {"hole", "child", "size"}) {
      statements.push_back(loop::alloc(name, kIndex, Expr(1), loop::Memory::registers));
    }
    statements.push_back(loop::for_loop("fill", 0, count_, write(fill, input(fill), number(fill))));
    // First what makes a heap, then the other elements, then what sorts.
    const Stmt make = loop::block({set("hole", half - Expr(1) - step), set("size", count_)});
    const Stmt compare = loop::block(
        {set("size", 0),
         loop::if_branch(loop::binary(better_, input(at), value(0)),
                         loop::block({write(0, input(at), number(at)), set("size", count_)}))});
    const Stmt take = loop::block(
        {loop::let("top", value(0)), loop::let("top_at", place(0)), copy(0, last),
         write(last, loop::var("top", type_), loop::var("top_at", kIndex)), set("size", last)});
    const Stmt choose = loop::if_branch(
        step < half, make,
        loop::block({set("hole", 0), loop::if_branch(step < half + rest, compare, take)}));
    statements.push_back(
        loop::for_loop("step", 0, half + extent - Expr(1), loop::block({choose, sift()})));
    return loop::block(std::move(statements));
  }

 private:
  static constexpr loop::Type kIndex{loop::Scalar::i64, 1};

  static Expr number(const Expr& index) { return loop::cast(kIndex, index); }
  static Expr get(const char* name) {
    return loop::cast({loop::Scalar::index, 1}, loop::load(kIndex, name, 0));
  }
  static Stmt set(const char* name, const Expr& index) {
    return loop::store(name, 0, number(index));
  }

  Expr flat(const Shape& shape, const Expr& at) const {
    return loop::flat_index(shape, row_indices(shape, axis_, at));
  }
  Expr computed(const Expr& stored) const {
    return stored_ == type_ ? stored : loop::cast(type_, stored);
  }
  Expr input(const Expr& at) const {
    return computed(loop::load(stored_, "a0", flat(k_.operand(0).shape, at)));
  }
  Expr value(const Expr& at) const {
    return computed(loop::load(stored_, "out0", flat(k_.result().shape, at)));
  }
  Expr place(const Expr& at) const {
    return loop::load(kIndex, "out1", flat(k_.result().shape, at));
  }
  Stmt write(const Expr& at, const Expr& x, const Expr& from) const {
    const Expr to = flat(k_.result().shape, at);
    return loop::block({loop::store("out0", to, k_.stored(x)), loop::store("out1", to, from)});
  }
  Stmt copy(const Expr& to, const Expr& from) const { return write(to, value(from), place(from)); }

  /// Whether an element belongs behind another: a worse value, or an equal one further on.
  Expr is_worse(const Expr& x, const Expr& x_at, const Expr& y, const Expr& y_at) const {
    const Expr behind =
        loop::binary(Op::bit_and, loop::binary(Op::eq, x, y), loop::binary(Op::gt, x_at, y_at));
    return loop::binary(Op::bit_or, loop::binary(better_, y, x), behind);
  }

  /// The element at "hole" moves down among the first "size" to where none below it is worse.
  Stmt sift() const {
    const Expr hole = get("hole"), child = get("child"), size = get("size");
    const Expr next = loop::min(child + Expr(1), size - Expr(1));
    const Expr x = loop::var("x", type_), x_at = loop::var("x_at", kIndex);
    const Stmt descend =
        loop::block({copy(hole, child), set("hole", child), set("child", child * 2 + Expr(1))});
    const Stmt down =
        loop::block({loop::if_branch(is_worse(value(next), place(next), value(child), place(child)),
                                     set("child", next)),
                     loop::if_branch(is_worse(value(child), place(child), x, x_at), descend,
                                     set("child", size))});
    return loop::if_branch(
        Expr(0) < size, loop::block({loop::let("x", value(hole)), loop::let("x_at", place(hole)),
                                     set("child", hole * 2 + Expr(1)),
                                     loop::while_loop(child < size, down), write(hole, x, x_at)}));
  }

  const KernelBuilder& k_;
  size_t axis_;
  Op better_;
  loop::Type type_, stored_;
  Expr count_;
};

void lower_top_k(KernelBuilder& k) {
  const Shape& shape = k.operand(0).shape;
  const size_t axis = static_cast<size_t>(k.attrs<TopKAttrs>().axis);
  const Expr some = loop::binary(Op::gt, loop::expr_of(k.result().shape[axis]), Expr(0));
  k.statement(loops_around(shape, axis, loop::if_branch(some, BestOfRow(k).find())));
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
