// Internal to backend/llvm: vectors of small integers that become words as they are loaded.
#pragma once

#include <llvm/IR/Module.h>
#include <llvm/Target/TargetMachine.h>

namespace backcast::llvm_backend {

/// Loads them by NEON's own instructions, which take any address: where they are extended at once
/// and not aligned, LLVM 19 loads words into general registers and takes them through the stack
/// (ARMISelLowering.cpp allows such an address to loads of f64 alone). Nothing on other machines.
void emit_narrow_loads(llvm::Module& module, const llvm::TargetMachine& machine);

}  // namespace backcast::llvm_backend
