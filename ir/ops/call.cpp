// call: the function applied to the operands.
#include "ir/graph/evaluator.h"
#include "ir/graph/module.h"
#include "ir/ops/pointwise.h"

namespace backcast::ops {
namespace {

Type infer_call(const InferContext& c) {
  const Function& callee = c.module.function(c.attrs.as<CallAttrs>().function.name);
  require(c.operands.size() == callee.params.size(), "@{} takes {} operands, {} are given",
          callee.name, callee.params.size(), c.operands.size());
  for (size_t i = 0; i < c.operands.size(); ++i) {
    const Type& wanted = callee.type(callee.params[i]);
    require(c.operands[i] == wanted, "operand {} of @{} is {}, not {}", i, callee.name,
            c.operands[i].to_string(), wanted.to_string());
  }
  return callee.result_type();
}

Value evaluate_call(const EvalContext& c) {
  const Function& callee = c.module.function(c.node.attrs.as<CallAttrs>().function.name);
  return evaluate(c.module, callee, std::vector<Value>(c.operands.begin(), c.operands.end()),
                  c.symbols);
}

}  // namespace

const OpDef call = {.name = "call",
                    .documentation = "the function applied to the operands.",
                    .min_operands = 0,
                    .max_operands = -1,
                    .default_attrs = CallAttrs{},
                    .infer = infer_call,
                    .evaluate = evaluate_call};

}  // namespace backcast::ops
