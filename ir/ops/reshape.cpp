// reshape: the same elements in row-major order under another shape.
#include "ir/ops/pointwise.h"

namespace backcast::ops {
namespace {

Type infer_reshape(const InferContext& c) {
  const TensorType& x = c.tensor(0);
  TensorType result{x.element, c.attrs.as<ReshapeAttrs>().shape};
  for (const Dim& extent : result.shape) require_extent(extent);
  require(x.element_count() == result.element_count(), "{} has {} elements, {} has {}",
          to_string(x), x.element_count().to_string(), to_string(result),
          result.element_count().to_string());
  return result;
}

Value evaluate_reshape(const EvalContext& c) {
  const Literal& x = c.tensor(0);
  return Literal(x.element(), c.result_shape(),
                 std::vector<std::byte>(x.bytes().begin(), x.bytes().end()));
}

}  // namespace

const OpDef reshape = {.name = "reshape",
                       .documentation = "the same elements in row-major order under another shape.",
                       .min_operands = 1,
                       .max_operands = 1,
                       .default_attrs = ReshapeAttrs{},
                       .infer = infer_reshape,
                       .evaluate = evaluate_reshape};

}  // namespace backcast::ops
