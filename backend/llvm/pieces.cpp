// See pieces.h.
#include "backend/llvm/pieces.h"

#include "backend/llvm/function_attributes.h"

namespace backcast::llvm_backend {

llvm::StructType* closure_type(const llvm::Function& kernel) {
  std::vector<llvm::Type*> fields;
  for (unsigned i = 0; i + 2 < kernel.arg_size(); ++i) {
    fields.push_back(kernel.getArg(i)->getType());
  }
  return llvm::StructType::get(kernel.getContext(), fields);
}

llvm::Function* piece_function(llvm::Function& kernel, const TargetInfo& target) {
  llvm::Module& module = *kernel.getParent();
  llvm::LLVMContext& context = module.getContext();
  const std::string name = kernel.getName().str() + "_piece";
  if (llvm::Function* known = module.getFunction(name)) return known;
  llvm::Type* int64 = llvm::Type::getInt64Ty(context);
  auto* type = llvm::FunctionType::get(llvm::Type::getVoidTy(context),
                                       {llvm::PointerType::get(context, 0), int64, int64}, false);
  llvm::Function* piece =
      llvm::Function::Create(type, llvm::GlobalValue::InternalLinkage, name, module);
  set_function_attributes(*piece, target);
  Builder builder(llvm::BasicBlock::Create(context, "entry", piece));
  llvm::StructType* closure = closure_type(kernel);
  std::vector<llvm::Value*> arguments;
  for (unsigned i = 0; i < closure->getNumElements(); ++i) {
    llvm::Value* field = builder.CreateStructGEP(closure, piece->getArg(0), i);
    arguments.push_back(builder.CreateLoad(closure->getElementType(i), field));
  }
  for (unsigned i = 1; i <= 2; ++i) {
    llvm::Type* index = kernel.getArg(kernel.arg_size() - 1)->getType();
    arguments.push_back(builder.CreateIntCast(piece->getArg(i), index, true));
  }
  builder.CreateCall(&kernel, arguments);
  builder.CreateRetVoid();
  return piece;
}

}  // namespace backcast::llvm_backend
