// Internal to backend/llvm: LLVM's target machines, our pass pipeline, objects.
#pragma once

#include <llvm/IR/Module.h>
#include <llvm/Target/TargetMachine.h>

#include <memory>

#include "backend/llvm/emit.h"

namespace backcast::llvm_backend {

/// CompileError when this build of LLVM lacks the architecture.
std::unique_ptr<llvm::TargetMachine> make_target_machine(const TargetInfo& target, int level);

/// Our own short list. What it leaves out is left out on purpose: see pipeline.cpp.
void run_passes(llvm::Module& module, llvm::TargetMachine& machine, int level);

/// Code generation, with the frame of each function.
ObjectFile generate_object(llvm::Module& module, llvm::TargetMachine& machine);

}  // namespace backcast::llvm_backend
