// concat: the operands one after the other along `axis`; their other extents are equal.
#include <cstring>

#include "ir/ops/ops.h"
#include "ir/ops/shape_rules.h"
#include "ir/ops/val.h"

namespace backcast::ops {
namespace {

Type infer_concat(const InferContext& context) {
  const int64_t axis = context.attrs.as<ConcatAttrs>().axis;
  TensorType result = context.tensor(0);
  require_axis(axis, result.rank(), "axis");
  const size_t along = static_cast<size_t>(axis);
  for (size_t i = 1; i < context.operands.size(); ++i) {
    require_same_element(context, i, 0);
    const TensorType& next = context.tensor(i);
    bool fits = next.rank() == result.rank();
    for (size_t d = 0; fits && d < result.shape.size(); ++d) {
      fits = d == along || next.shape[d] == result.shape[d];
    }
    if (!fits) {
      fail("operands 0 and {} must be equal but for dimension {} and are {} and {}", i, axis,
           to_string(context.tensor(0)), to_string(next));
    }
    result.shape[along] = result.shape[along] + next.shape[along];
  }
  return result;
}

Value evaluate_concat(const EvalContext& context) {
  const size_t axis = static_cast<size_t>(context.node.attrs.as<ConcatAttrs>().axis);
  ResultBuffer result(context.tensor(0).element(), context.result_shape());
  if (result.count() == 0) return result.finish();
  size_t rows = 1;  // runs of the dimensions from `axis` on
  for (size_t d = 0; d < axis; ++d) rows *= static_cast<size_t>(result.shape()[d]);
  std::byte* to = result.data<std::byte>();
  for (size_t row = 0; row < rows; ++row) {
    for (size_t i = 0; i < context.operands.size(); ++i) {
      const std::span<const std::byte> bytes = context.tensor(i).bytes();
      const size_t run = bytes.size() / rows;
      if (run != 0) std::memcpy(to, bytes.data() + row * run, run);
      to += run;
    }
  }
  return result.finish();
}

std::vector<Adjoint> gradient_of_concat(GradientContext& context) {
  const int64_t axis = context.node.attrs.as<ConcatAttrs>().axis;
  const Val seed(context.builder, context.seed());
  std::vector<Adjoint> result(context.node.operands.size());
  Dim begin = 0;
  for (size_t i = 0; i < result.size(); ++i) {
    const Dim end = begin + context.type(i).shape[static_cast<size_t>(axis)];
    if (context.wanted[i]) result[i] = backcast::slice(seed, axis, begin, end);
    begin = end;
  }
  return result;
}

}  // namespace

const OpDef concat = {
    .name = "concat",
    .documentation = "The operands one after the other along `axis`.",
    .min_operands = 1,
    .max_operands = -1,
    .default_attrs = ConcatAttrs{},
    .infer = infer_concat,
    .evaluate = evaluate_concat,
    .gradient = gradient_of_concat,
};

}  // namespace backcast::ops
