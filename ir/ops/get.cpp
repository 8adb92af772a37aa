// get: element number index of a tuple.
#include "ir/ops/pointwise.h"

namespace backcast::ops {
namespace {

Type infer_get(const InferContext& c) {
  require(c.operands[0].is_tuple(), "needs a tuple, not {}", c.operands[0].to_string());
  int64_t index = c.attrs.as<GetAttrs>().index;
  const std::vector<Type>& elements = c.operands[0].elements();
  require_axis(index, static_cast<int64_t>(elements.size()));
  return elements[static_cast<size_t>(index)];
}

Value evaluate_get(const EvalContext& c) {
  return c.operands[0].elements[static_cast<size_t>(c.node.attrs.as<GetAttrs>().index)];
}

}  // namespace

const OpDef get = {.name = "get",
                   .documentation = "element number index of a tuple.",
                   .min_operands = 1,
                   .max_operands = 1,
                   .default_attrs = GetAttrs{},
                   .infer = infer_get,
                   .evaluate = evaluate_get};

}  // namespace backcast::ops
