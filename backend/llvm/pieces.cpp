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

llvm::Value* closure_room(const std::vector<const llvm::Function*>& kernels,
                          llvm::Function& entry) {
  const llvm::DataLayout& layout = entry.getParent()->getDataLayout();
  uint64_t bytes = 0;
  for (const llvm::Function* kernel : kernels) {
    bytes = std::max<uint64_t>(bytes, layout.getTypeAllocSize(closure_type(*kernel)));
  }
  llvm::BasicBlock& first = entry.getEntryBlock();
  Builder builder(&first, first.begin());
  llvm::AllocaInst* room =
      builder.CreateAlloca(llvm::ArrayType::get(llvm::Type::getInt8Ty(entry.getContext()), bytes));
  room->setAlignment(llvm::Align(8));
  return room;
}

void emit_shared_call(const Sharing& sharing, llvm::Function& kernel,
                      llvm::ArrayRef<llvm::Value*> arguments, const TargetInfo& target,
                      Builder& builder) {
  llvm::LLVMContext& context = kernel.getContext();
  llvm::Function* entry = builder.GetInsertBlock()->getParent();
  llvm::BasicBlock* shared = llvm::BasicBlock::Create(context, "shared", entry);
  llvm::BasicBlock* alone = llvm::BasicBlock::Create(context, "alone", entry);
  llvm::BasicBlock* next = llvm::BasicBlock::Create(context, "done", entry);
  builder.CreateCondBr(builder.CreateIsNull(sharing.parallel_for), alone, shared);
  builder.SetInsertPoint(alone);
  builder.CreateCall(&kernel, arguments);
  builder.CreateBr(next);
  builder.SetInsertPoint(shared);
  llvm::StructType* type = closure_type(kernel);
  for (unsigned i = 0; i < type->getNumElements(); ++i) {
    builder.CreateStore(arguments[i], builder.CreateStructGEP(type, sharing.closure, i));
  }
  llvm::Type* pointer = llvm::PointerType::get(context, 0);
  llvm::Type* int64 = llvm::Type::getInt64Ty(context);
  auto* signature = llvm::FunctionType::get(llvm::Type::getVoidTy(context),
                                            {pointer, int64, int64, pointer, pointer}, false);
  builder.CreateCall(signature, sharing.parallel_for,
                     {sharing.user, builder.CreateIntCast(arguments.back(), int64, true),
                      llvm::ConstantInt::getSigned(int64, sharing.grain),
                      piece_function(kernel, target), sharing.closure});
  builder.CreateBr(next);
  builder.SetInsertPoint(next);
}

}  // namespace backcast::llvm_backend
