// See hooks.h.
#include "backend/llvm/hooks.h"

#include <llvm/IR/Constants.h>

#include <map>

#include "backend/llvm/function_attributes.h"
#include "backend/llvm/private_constant.h"

namespace backcast::llvm_backend {
namespace {

class HooksEmitter {
 public:
  HooksEmitter(const Abi& abi, const Types& types, bool names, llvm::Module& module)
      : abi_(abi),
        types_(types),
        names_(names),
        module_(module),
        context_(module.getContext()),
        pointer_(llvm::PointerType::get(context_, 0)),
        int32_(llvm::Type::getInt32Ty(context_)),
        builder_(context_) {}

  llvm::Function* emit() {
    llvm::Type* nothing = llvm::Type::getVoidTy(context_);
    auto* type = llvm::FunctionType::get(nothing, {pointer_, int32_, int32_}, false);
    function_ = llvm::Function::Create(type, llvm::GlobalValue::InternalLinkage,
                                       abi_.prefix + "_hooks", module_);
    set_function_attributes(*function_, types_.target());
    function_->addFnAttr(llvm::Attribute::NoInline);
    builder_.SetInsertPoint(llvm::BasicBlock::Create(context_, "entry", function_));
    llvm::BasicBlock* told = llvm::BasicBlock::Create(context_, "told", function_);
    llvm::BasicBlock* tell = llvm::BasicBlock::Create(context_, "tell", function_, told);
    builder_.CreateCondBr(builder_.CreateIsNull(function_->getArg(0)), told, tell);
    builder_.SetInsertPoint(tell);
    if (names_) collect_names();
    const ContextLayout layout(types_.target().pointer_bits / 8);
    user_ = member(layout.user);
    call(layout.after_kernel, function_->getArg(1));
    call(layout.before_kernel, function_->getArg(2));
    builder_.CreateBr(told);
    builder_.SetInsertPoint(told);
    builder_.CreateRetVoid();
    return function_;
  }

 private:
  llvm::Value* member(int64_t offset) {
    return builder_.CreateLoad(pointer_, at(function_->getArg(0), builder_.getInt64(offset)));
  }
  llvm::Value* at(llvm::Value* base, llvm::Value* bytes) {
    return builder_.CreateInBoundsGEP(llvm::Type::getInt8Ty(context_), base, bytes);
  }
  /// One text of all names, and where the name of each step begins: no pointer to relocate.
  void collect_names() {
    std::map<std::string, uint32_t> known;
    std::vector<uint32_t> begins;  // by number: these count the steps of all entry points
    std::string text;
    for (const EntryAbi& entry : abi_.entries) {
      for (const StepAbi& step : entry.steps) {
        const auto [name, fresh] = known.try_emplace(step.name, text.size());
        if (fresh) text += step.name + '\0';
        begins.push_back(name->second);
      }
    }
    text_ =
        private_constant(module_, llvm::ConstantDataArray::getString(context_, text), "names", 1);
    begins_ =
        private_constant(module_, llvm::ConstantDataArray::get(context_, begins), "name_begins", 4);
  }

  llvm::Value* name_of(llvm::Value* step) {
    if (!names_) return llvm::ConstantPointerNull::get(pointer_);
    llvm::Value* begin = builder_.CreateInBoundsGEP(int32_, begins_, step);
    return at(text_, builder_.CreateLoad(int32_, begin));
  }

  void call(int64_t offset, llvm::Value* step) {
    llvm::BasicBlock* wanted = llvm::BasicBlock::Create(context_, "wanted", function_);
    llvm::BasicBlock* next = llvm::BasicBlock::Create(context_, "next", function_);
    llvm::Value* hook = member(offset);
    llvm::Value* none = builder_.CreateICmpEQ(step, builder_.getInt32(kNoStep));
    builder_.CreateCondBr(builder_.CreateOr(none, builder_.CreateIsNull(hook)), next, wanted);
    builder_.SetInsertPoint(wanted);
    llvm::Type* nothing = llvm::Type::getVoidTy(context_);
    auto* type = llvm::FunctionType::get(nothing, {pointer_, int32_, pointer_}, false);
    builder_.CreateCall(type, hook, {user_, step, name_of(step)});
    builder_.CreateBr(next);
    builder_.SetInsertPoint(next);
  }

  const Abi& abi_;
  const Types& types_;
  bool names_;
  llvm::Module& module_;
  llvm::LLVMContext& context_;
  llvm::PointerType* pointer_;
  llvm::Type* int32_;
  Builder builder_;
  llvm::Function* function_ = nullptr;
  llvm::Value* user_ = nullptr;
  llvm::GlobalVariable* text_ = nullptr;
  llvm::GlobalVariable* begins_ = nullptr;
};

}  // namespace

llvm::Function* emit_hooks(const Abi& abi, const Types& types, bool names, llvm::Module& module) {
  return HooksEmitter(abi, types, names, module).emit();
}

}  // namespace backcast::llvm_backend
