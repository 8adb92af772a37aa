// What call and composite share: a function of the module applied to operands.
#pragma once

#include "ir/graph/op.h"

namespace backcast::ops {

/// The result type of `function` on the context's operands. The callee's symbols take the operands'
/// dimensions; those that no parameter determines keep their names. CompileError when the operands
/// do not fit the parameters.
Type infer_application(const InferContext& context, const FunctionRef& function);
Value evaluate_application(const EvalContext& context, const FunctionRef& function);
/// Calls the vector-Jacobian function of `function`.
std::vector<Adjoint> gradient_of_application(GradientContext& context, const FunctionRef& function);

}  // namespace backcast::ops
