// Internal to backend/llvm: entry points, the exported functions of a library. Each checks its
// arguments, then calls kernel after kernel on places in the arena.
#pragma once

#include <llvm/IR/Module.h>

#include <map>

#include "backend/library/abi.h"
#include "backend/llvm/emit.h"
#include "backend/llvm/operations.h"

namespace backcast::llvm_backend {

/// What the module already holds.
struct ModuleSymbols {
  std::map<loop::BufferId, llvm::GlobalVariable*> constants;
  std::map<std::string, llvm::Function*> kernels;
  llvm::GlobalVariable* state_layout = nullptr;  // of a training library
  llvm::Function* state_check = nullptr;         // bc_state_check
  llvm::Function* hooks = nullptr;               // see emit_hooks()
};

/// `abi` describes `entry`: the function's name, the fields of its structs, its checks.
void emit_entry(const loop::Program& program, const loop::EntryPoint& entry, const EntryAbi& abi,
                const Types& types, const ModuleSymbols& symbols, llvm::Module& module);

}  // namespace backcast::llvm_backend
