// Kernels whose iterations a caller may share out (loop::Step::grain). Internal to backend/llvm.
#pragma once

#include <llvm/IR/Module.h>

#include "backend/llvm/operations.h"
#include "ir/target/target_info.h"

namespace backcast::llvm_backend {

/// A kernel's arguments but for the range, as they lie in a closure.
llvm::StructType* closure_type(const llvm::Function& kernel);

/// The bc_loop_body of a kernel, made at its first use: does the iterations of a range on the
/// arguments that lie in the closure.
llvm::Function* piece_function(llvm::Function& kernel, const TargetInfo& target);

}  // namespace backcast::llvm_backend
