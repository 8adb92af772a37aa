// if_else: one of two functions of the module, applied to the operands.
#include "ir/graph/builder.h"
#include "ir/graph/evaluator.h"
#include "ir/ops/adjoint.h"
#include "ir/ops/call_rules.h"
#include "ir/ops/ops.h"
#include "ir/ops/shape_rules.h"

namespace backcast::ops {
namespace {

Type infer_if_else(const InferContext& context) {
  const IfElseAttrs& attrs = context.attrs.as<IfElseAttrs>();
  const TensorType& condition = context.tensor(0);
  if (condition.element != ElementType::boolean || condition.rank() != 0) {
    fail("the condition must be bool[] and is {}", to_string(condition));
  }
  const InferContext branch{context.module, context.operands.subspan(1), context.attrs};
  const Type then = infer_application(branch, attrs.then);
  const Type otherwise = infer_application(branch, attrs.otherwise);
  if (!(then == otherwise)) {
    fail("@{} gives {} and @{} gives {}; both branches must give the same type", attrs.then.name,
         then.to_string(), attrs.otherwise.name, otherwise.to_string());
  }
  return then;
}

Value evaluate_if_else(const EvalContext& context) {
  const IfElseAttrs& attrs = context.node.attrs.as<IfElseAttrs>();
  const bool holds = context.tensor(0).as_int(0) != 0;
  const FunctionRef& chosen = holds ? attrs.then : attrs.otherwise;
  return backcast::evaluate(context.module, context.module.function(chosen.name),
                            {context.operands.begin() + 1, context.operands.end()},
                            context.symbols);
}

/// The same choice between the branches' vector-Jacobian functions.
std::vector<Adjoint> gradient_of_if_else(GradientContext& context) {
  Builder& builder = context.builder;
  const IfElseAttrs& attrs = context.node.attrs.as<IfElseAttrs>();
  const std::vector<bool> wanted(context.wanted.begin() + 1, context.wanted.end());
  IfElseAttrs adjoint;
  adjoint.then = {context.services.vjp_function(attrs.then.name, wanted)};
  adjoint.otherwise = {context.services.vjp_function(attrs.otherwise.name, wanted)};
  std::vector<ValueId> operands = context.node.operands;
  for (ValueId leaf : cotangent_leaves(builder, context.cotangent, context.node.type)) {
    operands.push_back(leaf);
  }
  const ValueId adjoints = builder.emit(if_else, operands, adjoint);
  std::vector<Adjoint> result(context.wanted.size());
  int64_t next = 0;
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (!wanted[i]) continue;
    const ValueId part = builder.emit(get, {adjoints}, GetAttrs{next++});
    result[i + 1] = adjoint_of_value(builder, part);
  }
  return result;
}

}  // namespace

const OpDef if_else = {
    .name = "if_else",
    .documentation =
        "The function `then` applied to the operands behind the condition, or `otherwise` when the "
        "condition is false.",
    .min_operands = 1,
    .max_operands = -1,
    .default_attrs = IfElseAttrs{},
    .infer = infer_if_else,
    .evaluate = evaluate_if_else,
    .gradient = gradient_of_if_else,
};

}  // namespace backcast::ops
