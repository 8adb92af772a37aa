// See state_emitter.h. The structs here are bc_layout and bc_variable of runtime-c/bc_runtime.h.
#include "backend/llvm/state_emitter.h"

#include <llvm/Bitcode/BitcodeReader.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/Linker/Linker.h>

#include "backend/llvm/function_attributes.h"
#include "backend/llvm/private_constant.h"
#include "ir/graph/error.h"

namespace backcast::llvm_backend {
namespace {

using Kind = StateFunction::Kind;

constexpr unsigned char kX86[] = {
#include "bc_runtime_x86_64.inc"
};
constexpr unsigned char kAarch64[] = {
#include "bc_runtime_aarch64.inc"
};
constexpr unsigned char kArm[] = {
#include "bc_runtime_arm.inc"
};
constexpr unsigned char kThumb[] = {
#include "bc_runtime_thumb.inc"
};
constexpr unsigned char kRiscv32[] = {
#include "bc_runtime_riscv32.inc"
};
constexpr unsigned char kRiscv64[] = {
#include "bc_runtime_riscv64.inc"
};
constexpr unsigned char kWasm32[] = {
#include "bc_runtime_wasm32.inc"
};

llvm::StringRef bitcode_of(Architecture architecture) {
  const auto bytes = [](const auto& array) {
    return llvm::StringRef(reinterpret_cast<const char*>(array), sizeof array);
  };
  switch (architecture) {
    case Architecture::x86_64:
      return bytes(kX86);
    case Architecture::aarch64:
      return bytes(kAarch64);
    case Architecture::arm:
      return bytes(kArm);
    case Architecture::thumb:
      return bytes(kThumb);
    case Architecture::riscv32:
      return bytes(kRiscv32);
    case Architecture::riscv64:
      return bytes(kRiscv64);
    case Architecture::wasm32:
      return bytes(kWasm32);
    case Architecture::xtensa:
    case Architecture::any:
      break;  // C alone
  }
  BC_CHECK(false, "no runtime for architecture {}", static_cast<int>(architecture));
}

class StateEmitter {
 public:
  StateEmitter(const loop::Program& program, const Abi& abi, const Types& types,
               llvm::Module& module)
      : program_(program),
        abi_(abi),
        types_(types),
        module_(module),
        context_(module.getContext()),
        pointer_(llvm::PointerType::get(context_, 0)) {}

  void emit(ModuleSymbols& symbols) {
    emit_layout();
    if (abi_.state.initial_bytes > 0) emit_initial();
    symbols.state_layout = layout_;
    symbols.state_check = runtime_function("bc_state_check", {pointer_, pointer_});
    for (const StateFunction& function : abi_.functions) emit_function(function);
  }

 private:
  llvm::Constant* integer(int bits, uint64_t value) {
    return llvm::ConstantInt::get(llvm::Type::getIntNTy(context_, static_cast<unsigned>(bits)),
                                  value);
  }

  llvm::Constant* variable(const StateVariableAbi& v) {
    return llvm::ConstantStruct::getAnon(
        {integer(64, v.name_hash), integer(32, static_cast<uint64_t>(v.offset)),
         integer(32, static_cast<uint64_t>(v.bytes)),
         integer(32, static_cast<uint64_t>(v.slice_start)),
         integer(8, static_cast<uint8_t>(v.slice_axis)), integer(8, v.role), integer(8, v.element),
         integer(8, 0), integer(32, v.initial < 0 ? 0xffffffffu : static_cast<uint64_t>(v.initial)),
         integer(32, static_cast<uint64_t>(v.runs[0])),
         integer(32, static_cast<uint64_t>(v.runs[1])),
         integer(32, static_cast<uint64_t>(v.runs[2]))});
  }

  void emit_layout() {
    const StateAbi& state = abi_.state;
    std::vector<llvm::Constant*> parts = {llvm::ConstantStruct::getAnon(
        {integer(64, abi_.model_hash), integer(32, state.variables.size()),
         integer(32, static_cast<uint64_t>(state.bytes)),
         integer(32, static_cast<uint64_t>(state.alignment)), integer(32, 0)})};
    for (const StateVariableAbi& v : state.variables) parts.push_back(variable(v));
    layout_ = private_constant(module_, llvm::ConstantStruct::getAnon(parts), "state_layout", 8);
  }

  void emit_initial() {
    std::string bytes(static_cast<size_t>(abi_.state.initial_bytes), '\0');
    for (const StateVariableAbi& v : abi_.state.variables) {
      if (v.initial < 0) continue;
      const std::span<const std::byte> value = program_.buffer(v.buffer).value.bytes();
      memcpy(bytes.data() + v.initial, value.data(), value.size());
    }
    llvm::Constant* data =
        llvm::ConstantDataArray::getRaw(bytes, bytes.size(), llvm::Type::getInt8Ty(context_));
    initial_ = private_constant(module_, data, "state_initial", 8);
    initial_->setSection(constants_section(module_, program_.name));
  }

  llvm::Function* runtime_function(const std::string& name, llvm::ArrayRef<llvm::Type*> params) {
    auto* type = llvm::FunctionType::get(llvm::Type::getInt32Ty(context_), params, false);
    return llvm::cast<llvm::Function>(module_.getOrInsertFunction(name, type).getCallee());
  }

  void emit_function(const StateFunction& function);

  const loop::Program& program_;
  const Abi& abi_;
  const Types& types_;
  llvm::Module& module_;
  llvm::LLVMContext& context_;
  llvm::PointerType* pointer_;
  llvm::GlobalVariable* layout_ = nullptr;
  llvm::GlobalVariable* initial_ = nullptr;
};

/// The parameters of the exported function go to the runtime's behind the layout.
void StateEmitter::emit_function(const StateFunction& function) {
  std::vector<llvm::Type*> params = {pointer_};
  if (function.kind == Kind::init) {
    params.insert(params.end(), {types_.index(), llvm::Type::getInt64Ty(context_)});
  } else {
    const bool is_rate = function.kind == Kind::set_learning_rate;
    params.push_back(is_rate ? llvm::Type::getFloatTy(context_) : pointer_);
  }
  auto* type = llvm::FunctionType::get(llvm::Type::getInt32Ty(context_), params, false);
  auto* exported =
      llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage, function.symbol, module_);
  set_function_attributes(*exported, types_.target());
  llvm::IRBuilder<> builder(llvm::BasicBlock::Create(context_, "entry", exported));
  llvm::Value* null = llvm::ConstantPointerNull::get(pointer_);
  std::vector<llvm::Value*> arguments = {layout_};
  if (function.kind == Kind::init) arguments.push_back(initial_ == nullptr ? null : initial_);
  arguments.push_back(exported->getArg(0));
  if (function.roles != 0) arguments.push_back(builder.getInt32(function.roles));
  if (function.kind == Kind::set_learning_rate) {
    const bool is_double = abi_.state.rate == ElementType::f64;
    llvm::Type* rate = is_double ? builder.getDoubleTy() : builder.getFloatTy();
    llvm::Value* value = builder.CreateFPCast(exported->getArg(1), rate);
    llvm::Value* bits = builder.CreateBitCast(value, builder.getIntNTy(is_double ? 64 : 32));
    arguments.push_back(builder.CreateZExt(bits, builder.getInt64Ty()));
  } else {
    for (unsigned i = 1; i < exported->arg_size(); ++i) arguments.push_back(exported->getArg(i));
  }
  std::vector<llvm::Type*> types;
  for (const llvm::Value* argument : arguments) types.push_back(argument->getType());
  builder.CreateRet(builder.CreateCall(runtime_function(function.runtime, types), arguments));
}

/// Nothing of the compiler's own settings stays: CPU, features and the like are the target's.
void adopt(llvm::Function& function, const TargetInfo& target) {
  for (const llvm::Attribute& attribute : function.getAttributes().getFnAttrs()) {
    if (attribute.isStringAttribute()) function.removeFnAttr(attribute.getKindAsString());
  }
  function.removeFnAttr(llvm::Attribute::UWTable);
  set_function_attributes(function, target);
  function.setLinkage(llvm::GlobalValue::InternalLinkage);
}

}  // namespace

void emit_state(const loop::Program& program, const Abi& abi, const Types& types,
                llvm::Module& module, ModuleSymbols& symbols) {
  if (abi.state.bytes == 0) return;
  StateEmitter(program, abi, types, module).emit(symbols);
}

void link_runtime(const TargetInfo& target, llvm::Module& module) {
  const llvm::MemoryBufferRef bytes(bitcode_of(target.architecture), "runtime");
  llvm::Expected<std::unique_ptr<llvm::Module>> parsed =
      llvm::parseBitcodeFile(bytes, module.getContext());
  BC_CHECK(static_cast<bool>(parsed), "runtime: {}", llvm::toString(parsed.takeError()));
  std::unique_ptr<llvm::Module> runtime = std::move(*parsed);
  runtime->setTargetTriple(module.getTargetTriple());
  runtime->setDataLayout(module.getDataLayout());
  // Its flags are those of the compiler that Backcast was built with.
  if (llvm::NamedMDNode* flags = runtime->getModuleFlagsMetadata()) flags->eraseFromParent();
  std::vector<std::string> names;
  for (const llvm::Function& function : *runtime) {
    if (!function.isDeclaration()) names.push_back(function.getName().str());
  }
  const bool failed =
      llvm::Linker::linkModules(module, std::move(runtime), llvm::Linker::Flags::LinkOnlyNeeded);
  BC_CHECK(!failed, "the runtime cannot be linked for {}", target.name);
  for (const std::string& name : names) {
    llvm::Function* function = module.getFunction(name);
    if (function != nullptr && !function->isDeclaration()) adopt(*function, target);
  }
}

}  // namespace backcast::llvm_backend
