// prefix: y = x[…, 0 … count-1, …]. How many there are is known at run time only: a symbol stands
// for it, 0 to the extent of x, in the types of all that follows.
#include <fmt/format.h>

#include "ir/ops/movement.h"
#include "ir/ops/ops.h"
#include "ir/ops/shape_rules.h"
#include "ir/ops/val.h"

namespace backcast::ops {
namespace {

Type infer_prefix(const InferContext& context) {
  const PrefixAttrs& attrs = context.attrs.as<PrefixAttrs>();
  TensorType result = context.tensor(0);
  const TensorType& count = context.tensor(1);
  require_axis(attrs.axis, result.rank(), "axis");
  if (count.element != ElementType::i64 || !count.shape.empty()) {
    fail("the count is {} instead of an i64 scalar", to_string(count));
  }
  std::set<std::string> symbols;
  attrs.extent.collect_symbols(symbols);
  if (symbols.size() != 1 || !(attrs.extent == Dim::symbol(*symbols.begin()))) {
    fail("the extent {} is no symbol", attrs.extent.to_string());
  }
  Dim& extent = result.shape[static_cast<size_t>(attrs.axis)];
  const DimRange range = attrs.extent.range(context.module.symbols);
  if (range.min != 0 || range.max != extent.range(context.module.symbols).max) {
    fail("the range of {} is {} to {} where there are up to {}", *symbols.begin(), range.min,
         range.max, extent.to_string());
  }
  extent = attrs.extent;
  return result;
}

Value evaluate_prefix(const EvalContext& context) {
  const size_t axis = static_cast<size_t>(context.node.attrs.as<PrefixAttrs>().axis);
  const Literal& x = context.tensor(0);
  std::vector<int64_t> shape = x.shape();
  const int64_t count = context.tensor(1).as_int(0);
  if (count < 0 || count > shape[axis]) {
    fail("a count of {} where there are {}", count, shape[axis]);
  }
  shape[axis] = count;
  return strided_copy(x, std::move(shape), 0, row_major_strides(x.shape()));
}

std::vector<Adjoint> gradient_of_prefix(GradientContext& context) {
  // Nothing flows to what was left out, nor to the count.
  const size_t axis = static_cast<size_t>(context.node.attrs.as<PrefixAttrs>().axis);
  const Val seed(context.builder, context.seed());
  const Shape shape = context.type(0).shape;
  PadAttrs pads{Dims(shape.size(), 0), Dims(shape.size(), 0), Ints(shape.size(), 0)};
  pads.high[axis] = shape[axis] - seed.shape()[axis];
  const ValueId zero = context.builder.scalar(seed.element(), 0);
  return {seed.emit(pad, {zero}, pads), {}};
}

}  // namespace

const OpDef prefix = {
    .name = "prefix",
    .documentation =
        "The first `count` positions of the operand along `axis`, 0 to all of them; the symbol "
        "`extent` has this value from here on.",
    .min_operands = 2,
    .max_operands = 2,
    .default_attrs = PrefixAttrs{},
    .infer = infer_prefix,
    .evaluate = evaluate_prefix,
    .gradient = gradient_of_prefix,
};

}  // namespace backcast::ops
