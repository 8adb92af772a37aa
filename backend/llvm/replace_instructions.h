// Internal to backend/llvm: instructions that others take the place of.
#pragma once

#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Module.h>
#include <llvm/Transforms/Utils/Local.h>

namespace backcast::llvm_backend {

/// Uses of every instruction for which `replacement` gives a value become uses of that; what then
/// has no use is removed.
template <class Replacement>
void replace_instructions(llvm::Module& module, const Replacement& replacement) {
  for (llvm::Function& function : module) {
    for (llvm::Instruction& instruction :
         llvm::make_early_inc_range(llvm::instructions(function))) {
      llvm::Value* value = replacement(instruction);
      if (value == nullptr) continue;
      instruction.replaceAllUsesWith(value);
      llvm::RecursivelyDeleteTriviallyDeadInstructions(&instruction);
    }
  }
}

}  // namespace backcast::llvm_backend
