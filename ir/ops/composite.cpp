// composite: a call with a well-known name, which lowering may claim; its meaning is the body.
#include "ir/graph/evaluator.h"
#include "ir/graph/module.h"
#include "ir/ops/pointwise.h"

namespace backcast::ops {
namespace {

Type infer_composite(const InferContext& c) {
  const Function& callee = c.module.function(c.attrs.as<CompositeAttrs>().function.name);
  require(c.operands.size() == callee.params.size(), "@{} takes {} operands, {} are given",
          callee.name, callee.params.size(), c.operands.size());
  for (size_t i = 0; i < c.operands.size(); ++i) {
    const Type& wanted = callee.type(callee.params[i]);
    require(c.operands[i] == wanted, "operand {} of @{} is {}, not {}", i, callee.name,
            c.operands[i].to_string(), wanted.to_string());
  }
  return callee.result_type();
}

Value evaluate_composite(const EvalContext& c) {
  const Function& callee = c.module.function(c.node.attrs.as<CompositeAttrs>().function.name);
  return evaluate(c.module, callee, std::vector<Value>(c.operands.begin(), c.operands.end()),
                  c.symbols);
}

}  // namespace

const OpDef composite = {
    .name = "composite",
    .documentation =
        "a call with a well-known name, which lowering may claim; its meaning is the body.",
    .min_operands = 0,
    .max_operands = -1,
    .default_attrs = CompositeAttrs{},
    .infer = infer_composite,
    .evaluate = evaluate_composite};

}  // namespace backcast::ops
