// dimension: the value of a dimension expression, an i64 scalar.
#include "ir/graph/module.h"
#include "ir/ops/ops.h"

namespace backcast::ops {
namespace {

Type infer_dimension(const InferContext&) { return TensorType{ElementType::i64, {}}; }

Value evaluate_dimension(const EvalContext& context) {
  const Dim& value = context.node.attrs.as<DimensionAttrs>().value;
  return Literal::from_ints({}, {value.evaluate(context.symbols)});
}

}  // namespace

const OpDef dimension = {
    .name = "dimension",
    .documentation = "The value of a dimension expression as an i64 scalar.",
    .min_operands = 0,
    .max_operands = 0,
    .default_attrs = DimensionAttrs{},
    .infer = infer_dimension,
    .evaluate = evaluate_dimension,
    .gradient = zero_gradient("no operands"),
};

}  // namespace backcast::ops
