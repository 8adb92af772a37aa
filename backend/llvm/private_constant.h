// Internal to backend/llvm: read-only data that only the module itself sees.
#pragma once

#include <llvm/IR/Module.h>

#include <string>

namespace backcast::llvm_backend {

llvm::GlobalVariable* private_constant(llvm::Module& module, llvm::Constant* data,
                                       const std::string& name, uint64_t alignment);
/// The section of a program's constants: where formats of objects allow it, one of its own.
std::string constants_section(const llvm::Module& module, const std::string& program);

}  // namespace backcast::llvm_backend
