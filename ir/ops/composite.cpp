// composite: a call with a well-known name, which says what the function computes ("softmax"). Its
// meaning is the body; lowering may claim the name and compute the same in a better way.
#include "ir/graph/error.h"
#include "ir/ops/adjoint.h"
#include "ir/ops/call_rules.h"
#include "ir/ops/ops.h"
#include "ir/ops/shape_rules.h"

namespace backcast::ops {
namespace {

Type infer_composite(const InferContext& context) {
  const CompositeAttrs& attrs = context.attrs.as<CompositeAttrs>();
  if (attrs.name.empty()) fail("a composite needs a name; a call without one is a call");
  return infer_application(context, attrs.function);
}

/// What the named function gives, as adjoints of the tensor operands that are floating-point.
std::vector<Adjoint> named_gradient(GradientContext& context, const FunctionRef& gradient) {
  Builder& builder = context.builder;
  std::vector<ValueId> operands = context.node.operands;
  operands.push_back(context.result);
  for (ValueId leaf : cotangent_leaves(builder, context.cotangent, context.node.type)) {
    operands.push_back(leaf);
  }
  const ValueId adjoints = builder.emit(call, operands, CallAttrs{gradient});
  const Type given = builder.type(adjoints);
  std::vector<Type> expected;
  for (ValueId operand : context.node.operands) {
    const Type& type = builder.type(operand);
    if (type.is_tensor() && is_float(type.tensor().element)) expected.push_back(type);
  }
  if (!(given == Type::tuple(expected))) {
    throw CompileError(
        context.node.loc,
        fmt::format("the gradient @{} gives {} and must give {}, the adjoint of "
                    "every floating-point operand",
                    gradient.name, given.to_string(), Type::tuple(expected).to_string()));
  }
  std::vector<Adjoint> result(context.node.operands.size());
  int64_t next = 0;
  for (size_t i = 0; i < result.size(); ++i) {
    const Type& type = builder.type(context.operand(i));
    if (!type.is_tensor() || !is_float(type.tensor().element)) continue;
    result[i] = builder.emit(get, {adjoints}, GetAttrs{next++});
  }
  return result;
}

std::vector<Adjoint> gradient_of_composite(GradientContext& context) {
  const CompositeAttrs& attrs = context.node.attrs.as<CompositeAttrs>();
  if (!attrs.gradient.name.empty()) return named_gradient(context, attrs.gradient);
  return gradient_of_application(context, attrs.function);
}

Value evaluate_composite(const EvalContext& context) {
  return evaluate_application(context, context.node.attrs.as<CompositeAttrs>().function);
}

}  // namespace

const OpDef composite = {
    .name = "composite",
    .documentation =
        "A call with a well-known name; its meaning is the function, which lowering may replace by "
        "something better of the same name.",
    .min_operands = 0,
    .max_operands = -1,
    .default_attrs = CompositeAttrs{},
    .infer = infer_composite,
    .evaluate = evaluate_composite,
    .gradient = gradient_of_composite,
};

}  // namespace backcast::ops
