// dimension: the value of a dimension expression, an i64 scalar.
#include "ir/ops/pointwise.h"

namespace backcast::ops {
namespace {

Type infer_dimension(const InferContext&) { return TensorType{ElementType::i64, {}}; }

Value evaluate_dimension(const EvalContext& c) {
  TensorWriter out = result_writer(c);
  out.set(0, c.node.attrs.as<DimensionAttrs>().value.evaluate(c.symbols));
  return out.finish();
}

}  // namespace

const OpDef dimension = {.name = "dimension",
                         .documentation = "the value of a dimension expression, an i64 scalar.",
                         .min_operands = 0,
                         .max_operands = 0,
                         .default_attrs = DimensionAttrs{},
                         .infer = infer_dimension,
                         .evaluate = evaluate_dimension};

}  // namespace backcast::ops
