// concat: the operands one after another along an axis.
#include "ir/ops/pointwise.h"

namespace backcast::ops {
namespace {

Type infer_concat(const InferContext& c) {
  TensorType result = c.tensor(0);
  int64_t axis = c.attrs.as<ConcatAttrs>().axis;
  require_axis(axis, result.rank());
  for (size_t i = 1; i < c.operands.size(); ++i) {
    const TensorType& x = c.tensor(i);
    require(x.element == result.element && x.rank() == result.rank(), "operands differ: {} and {}",
            to_string(c.tensor(0)), to_string(x));
    for (size_t d = 0; d < x.shape.size(); ++d) {
      if (static_cast<int64_t>(d) == axis) {
        result.shape[d] = result.shape[d] + x.shape[d];
      } else {
        require(x.shape[d] == result.shape[d], "operands differ beside axis {}: {} and {}", axis,
                to_string(c.tensor(0)), to_string(x));
      }
    }
  }
  return result;
}

Value evaluate_concat(const EvalContext& c) {
  TensorWriter out = result_writer(c);
  size_t axis = static_cast<size_t>(c.node.attrs.as<ConcatAttrs>().axis);
  std::vector<int64_t> strides = row_major_strides(out.shape());
  int64_t base = 0;
  for (size_t operand = 0; operand < c.operands.size(); ++operand) {
    const Literal& x = c.tensor(operand);
    int64_t i = 0;
    for (Odometer at(x.shape()); !at.done(); at.next()) out.copy(base + at.flat(strides), x, i++);
    base += x.shape()[axis] * strides[axis];
  }
  return out.finish();
}

}  // namespace

const OpDef concat = {.name = "concat",
                      .documentation = "the operands one after another along an axis.",
                      .min_operands = 1,
                      .max_operands = -1,
                      .default_attrs = ConcatAttrs{},
                      .infer = infer_concat,
                      .evaluate = evaluate_concat};

}  // namespace backcast::ops
