// tuple: a tuple of the operands.
#include "ir/ops/pointwise.h"

namespace backcast::ops {
namespace {

Type infer_tuple(const InferContext& c) {
  return Type::tuple(std::vector<Type>(c.operands.begin(), c.operands.end()));
}

Value evaluate_tuple(const EvalContext& c) {
  return Value::make_tuple(std::vector<Value>(c.operands.begin(), c.operands.end()));
}

}  // namespace

const OpDef tuple = {.name = "tuple",
                     .documentation = "a tuple of the operands.",
                     .min_operands = 0,
                     .max_operands = -1,
                     .default_attrs = {},
                     .infer = infer_tuple,
                     .evaluate = evaluate_tuple};

}  // namespace backcast::ops
