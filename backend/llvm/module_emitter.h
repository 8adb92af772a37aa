// Internal to backend/llvm: a whole program as an LLVM module.
#pragma once

#include <llvm/IR/Module.h>

#include <memory>

#include "backend/llvm/emit.h"

namespace backcast::llvm_backend {

/// `layout` and `triple` are those of the target machine.
std::unique_ptr<llvm::Module> emit_module(const loop::Program& program, const TargetInfo& target,
                                          const LlvmOptions& options, llvm::LLVMContext& context,
                                          const llvm::DataLayout& layout);

}  // namespace backcast::llvm_backend
