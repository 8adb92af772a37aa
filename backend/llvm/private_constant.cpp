// See private_constant.h.
#include "backend/llvm/private_constant.h"

#include <llvm/IR/GlobalVariable.h>
#include <llvm/TargetParser/Triple.h>

namespace backcast::llvm_backend {

llvm::GlobalVariable* private_constant(llvm::Module& module, llvm::Constant* data,
                                       const std::string& name, uint64_t alignment) {
  auto* global = new llvm::GlobalVariable(module, data->getType(), true,
                                          llvm::GlobalValue::PrivateLinkage, data, name);
  global->setUnnamedAddr(llvm::GlobalValue::UnnamedAddr::Global);
  global->setAlignment(llvm::Align(alignment));
  return global;
}

std::string constants_section(const llvm::Module& module, const std::string& program) {
  const llvm::Triple triple(module.getTargetTriple());
  if (triple.isOSBinFormatMachO()) return "__TEXT,__const";
  if (triple.isOSBinFormatCOFF()) return ".rdata$" + program;  // sorted into .rdata
  return ".rodata." + program;
}

}  // namespace backcast::llvm_backend
