// Internal to backend/llvm: the body of a kernel, and math functions.
#pragma once

#include <set>

#include "backend/llvm/expr_emitter.h"
#include "ir/loop/stmt.h"

namespace backcast::llvm_backend {

/// Fills `function`, whose parameters are the kernel's buffers (pointers), then its sizes (index).
void emit_kernel_body(const Types& types, const loop::Kernel& kernel, llvm::Function& function,
                      const FunctionLookup& functions);

/// Fills `function`, whose parameters are those of the math function.
void emit_math_body(const Types& types, const loop::MathFunction& math, llvm::Function& function,
                    const FunctionLookup& functions);

}  // namespace backcast::llvm_backend
