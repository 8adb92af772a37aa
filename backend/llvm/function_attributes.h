// Internal to backend/llvm: what every function of a target carries.
#pragma once

#include <llvm/IR/Function.h>

#include "ir/target/target_info.h"

namespace backcast::llvm_backend {

/// CPU and features; no unwinding; loops never become calls of library functions.
void set_function_attributes(llvm::Function& function, const TargetInfo& target);

}  // namespace backcast::llvm_backend
