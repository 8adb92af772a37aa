// See private_constant.h.
#include "backend/llvm/private_constant.h"

#include <llvm/IR/GlobalVariable.h>

namespace backcast::llvm_backend {

llvm::GlobalVariable* private_constant(llvm::Module& module, llvm::Constant* data,
                                       const std::string& name, uint64_t alignment) {
  auto* global = new llvm::GlobalVariable(module, data->getType(), true,
                                          llvm::GlobalValue::PrivateLinkage, data, name);
  global->setUnnamedAddr(llvm::GlobalValue::UnnamedAddr::Global);
  global->setAlignment(llvm::Align(alignment));
  return global;
}

}  // namespace backcast::llvm_backend
