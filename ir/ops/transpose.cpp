// transpose: result dimension i is operand dimension permutation[i].
#include "ir/ops/pointwise.h"

namespace backcast::ops {
namespace {

Type infer_transpose(const InferContext& c) {
  const TensorType& x = c.tensor(0);
  const Ints& permutation = c.attrs.as<TransposeAttrs>().permutation;
  require_length(permutation.size(), x.rank(), "permutation");
  require_axes(permutation, x.rank());
  TensorType result{x.element, {}};
  for (int64_t axis : permutation) result.shape.push_back(x.shape[static_cast<size_t>(axis)]);
  return result;
}

Value evaluate_transpose(const EvalContext& c) {
  TensorWriter out = result_writer(c);
  const Literal& x = c.tensor(0);
  std::vector<int64_t> from = row_major_strides(x.shape()), strides;
  for (int64_t axis : c.node.attrs.as<TransposeAttrs>().permutation) {
    strides.push_back(from[static_cast<size_t>(axis)]);
  }
  int64_t i = 0;
  for (Odometer at(out.shape()); !at.done(); at.next()) out.copy(i++, x, at.flat(strides));
  return out.finish();
}

}  // namespace

const OpDef transpose = {.name = "transpose",
                         .documentation = "result dimension i is operand dimension permutation[i].",
                         .min_operands = 1,
                         .max_operands = 1,
                         .default_attrs = TransposeAttrs{},
                         .infer = infer_transpose,
                         .evaluate = evaluate_transpose};

}  // namespace backcast::ops
