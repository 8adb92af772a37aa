// constant: a tensor known when compiling.
#include "ir/ops/pointwise.h"

namespace backcast::ops {
namespace {

Type infer_constant(const InferContext& c) { return c.attrs.as<ConstantAttrs>().value.type(); }

Value evaluate_constant(const EvalContext& c) { return c.node.attrs.as<ConstantAttrs>().value; }

}  // namespace

const OpDef constant = {.name = "constant",
                        .documentation = "a tensor known when compiling.",
                        .min_operands = 0,
                        .max_operands = 0,
                        .default_attrs = ConstantAttrs{},
                        .infer = infer_constant,
                        .evaluate = evaluate_constant};

}  // namespace backcast::ops
