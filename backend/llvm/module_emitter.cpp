// See module_emitter.h: constants, math functions, kernels; the entry points are in
// entry_emitter.cpp.
#include "backend/llvm/module_emitter.h"

#include <llvm/IR/Constants.h>
#include <llvm/TargetParser/Triple.h>

#include "backend/llvm/aliasing.h"
#include "backend/llvm/entry_emitter.h"
#include "backend/llvm/function_attributes.h"
#include "backend/llvm/hooks.h"
#include "backend/llvm/kernel_emitter.h"
#include "backend/llvm/private_constant.h"
#include "backend/llvm/state_emitter.h"
#include "ir/graph/error.h"

namespace backcast::llvm_backend {
namespace {

class ModuleEmitter {
 public:
  ModuleEmitter(const loop::Program& program, const TargetInfo& target, const LlvmOptions& options,
                llvm::LLVMContext& context)
      : program_(program),
        target_(target),
        options_(options),
        types_(context, target),
        module_(std::make_unique<llvm::Module>(program.name, context)) {}

  std::unique_ptr<llvm::Module> emit(const llvm::DataLayout& layout) {
    module_->setTargetTriple(target_.triple);
    module_->setDataLayout(layout);
    set_flags();
    ModuleSymbols symbols;
    for (size_t id = 0; id < program_.buffers.size(); ++id) {
      const loop::Buffer& buffer = program_.buffers[id];
      if (buffer.kind == loop::BufferClass::constant && buffer.view_of < 0) {
        symbols.constants[static_cast<loop::BufferId>(id)] = emit_constant_data(buffer);
      }
    }
    for (const auto& [name, kernel] : program_.kernels) symbols.kernels[name] = emit_kernel(kernel);
    const Abi abi = abi_of(program_);
    emit_state(program_, abi, types_, *module_, symbols);
    symbols.hooks = emit_hooks(abi, types_, options_.names, *module_);
    for (size_t i = 0; i < program_.entries.size(); ++i) {
      emit_entry(program_, program_.entries[i], abi.entries[i], types_, symbols, *module_);
    }
    if (abi.state.bytes > 0) link_runtime(target_, *module_);
    return std::move(module_);
  }

 private:
  void set_flags();
  llvm::GlobalVariable* emit_constant_data(const loop::Buffer& buffer);
  llvm::Function* emit_kernel(const loop::Kernel& kernel);
  llvm::Function* math_function(const std::string& name, int32_t lanes);
  const loop::MathFunction& find_math(const std::string& name, int32_t lanes,
                                      loop::MathFunction& widened) const;

  const loop::Program& program_;
  const TargetInfo& target_;
  const LlvmOptions& options_;
  Types types_;
  std::unique_ptr<llvm::Module> module_;
  std::map<std::pair<std::string, int32_t>, llvm::Function*> math_;
};

/// Without the ABI's name in the module RISC-V objects claim soft float.
void ModuleEmitter::set_flags() {
  const bool riscv = target_.architecture == Architecture::riscv32 ||
                     target_.architecture == Architecture::riscv64;
  if (riscv && !target_.abi.empty()) {
    module_->addModuleFlag(llvm::Module::Error, "target-abi",
                           llvm::MDString::get(module_->getContext(), target_.abi));
  }
  if (target_.architecture == Architecture::arm || target_.architecture == Architecture::thumb) {
    // The embedded ABI's default sizes, as gcc's -fno-short-enums -fno-short-wchar have them.
    module_->addModuleFlag(llvm::Module::Error, "wchar_size", 4U);
    module_->addModuleFlag(llvm::Module::Error, "min_enum_size", 4U);
  }
}

llvm::GlobalVariable* ModuleEmitter::emit_constant_data(const loop::Buffer& buffer) {
  const std::span<const std::byte> bytes = buffer.value.bytes();
  BC_CHECK(!bytes.empty() || buffer.value.element_count() == 0, "constant {} has no value",
           buffer.name);
  const llvm::StringRef raw(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  llvm::Constant* data = llvm::ConstantDataArray::getRaw(
      raw, bytes.size(), llvm::Type::getInt8Ty(module_->getContext()));
  const int64_t alignment = std::max(buffer.alignment, byte_size(buffer.element));
  llvm::GlobalVariable* global =
      private_constant(*module_, data, buffer.name, static_cast<uint64_t>(alignment));
  global->setSection(constants_section(*module_, program_.name));
  return global;
}

llvm::Function* ModuleEmitter::emit_kernel(const loop::Kernel& kernel) {
  llvm::LLVMContext& context = module_->getContext();
  std::vector<llvm::Type*> params(kernel.buffers.size(), llvm::PointerType::get(context, 0));
  params.resize(params.size() + kernel.sizes.size(), types_.index());
  auto* type = llvm::FunctionType::get(llvm::Type::getVoidTy(context), params, false);
  llvm::Function* function = llvm::Function::Create(type, llvm::GlobalValue::InternalLinkage,
                                                    kernel_symbol(program_, kernel.name), *module_);
  set_function_attributes(*function, target_);
  function->addFnAttr(llvm::Attribute::NoInline);
  const std::vector<bool> exclusive = exclusive_buffers(program_, kernel);
  for (unsigned i = 0; i < kernel.buffers.size(); ++i) {
    const loop::BufferParam& buffer = kernel.buffers[i];
    function->getArg(i)->setName(buffer.name);
    function->addParamAttr(i, llvm::Attribute::NoCapture);
    if (exclusive[i]) function->addParamAttr(i, llvm::Attribute::NoAlias);
    if (buffer.mode == loop::AccessMode::read) {
      function->addParamAttr(i, llvm::Attribute::ReadOnly);
    }
  }
  emit_kernel_body(types_, kernel, *function, [this](const std::string& name, int32_t lanes) {
    return math_function(name, lanes);
  });
  return function;
}

const loop::MathFunction& ModuleEmitter::find_math(const std::string& name, int32_t lanes,
                                                   loop::MathFunction& widened) const {
  const auto lanes_of_function = [](const loop::MathFunction& f) { return f.result.type().lanes; };
  const auto exact = program_.functions.find(name);
  if (exact != program_.functions.end() && lanes_of_function(exact->second) == lanes) {
    return exact->second;
  }
  const auto wide = program_.functions.find(name + "x" + std::to_string(lanes));
  if (wide != program_.functions.end()) return wide->second;
  BC_CHECK(exact != program_.functions.end() && lanes_of_function(exact->second) == 1,
           "the program has no math function {} of {} lanes", name, lanes);
  widened = exact->second.widen(lanes);
  return widened;
}

llvm::Function* ModuleEmitter::math_function(const std::string& name, int32_t lanes) {
  llvm::Function*& function = math_[{name, lanes}];
  if (function != nullptr) return function;
  loop::MathFunction widened;
  const loop::MathFunction& math = find_math(name, lanes, widened);
  std::vector<llvm::Type*> params;
  for (const loop::MathFunction::Param& param : math.params) {
    params.push_back(types_.value(param.type));
  }
  auto* type = llvm::FunctionType::get(types_.value(math.result.type()), params, false);
  llvm::Function* created = llvm::Function::Create(type, llvm::GlobalValue::InternalLinkage,
                                                   program_.name + "_m_" + math.name, *module_);
  function = created;
  set_function_attributes(*created, target_);
  created->addFnAttr(options_.outline_math ? llvm::Attribute::NoInline
                                           : llvm::Attribute::AlwaysInline);
  created->setDoesNotAccessMemory();
  emit_math_body(types_, math, *created,
                 [this](const std::string& callee, int32_t n) { return math_function(callee, n); });
  return created;
}

}  // namespace

std::unique_ptr<llvm::Module> emit_module(const loop::Program& program, const TargetInfo& target,
                                          const LlvmOptions& options, llvm::LLVMContext& context,
                                          const llvm::DataLayout& layout) {
  return ModuleEmitter(program, target, options, context).emit(layout);
}

}  // namespace backcast::llvm_backend
