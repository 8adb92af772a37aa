// Internal to backend/llvm: the state of a training library. Its exported functions call runtime-c,
// which is linked into the module as bitcode and becomes local to it.
#pragma once

#include <llvm/IR/Module.h>

#include "backend/library/abi.h"
#include "backend/llvm/entry_emitter.h"
#include "backend/llvm/operations.h"

namespace backcast::llvm_backend {

/// Adds the table of variables and the exported functions; `symbols` gets what entry points need.
/// Nothing for a library without state.
void emit_state(const loop::Program& program, const Abi& abi, const Types& types,
                llvm::Module& module, ModuleSymbols& symbols);

/// Links what the module calls of the runtime; to be called when all else is there.
void link_runtime(const TargetInfo& target, llvm::Module& module);

}  // namespace backcast::llvm_backend
