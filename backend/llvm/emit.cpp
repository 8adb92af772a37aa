// See emit.h.
#include "backend/llvm/emit.h"

#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Support/raw_ostream.h>

#include "backend/llvm/codegen.h"
#include "backend/llvm/module_emitter.h"
#include "ir/graph/error.h"

namespace backcast {
namespace {

std::unique_ptr<llvm::Module> checked_module(const loop::Program& program, const TargetInfo& target,
                                             const LlvmOptions& options, llvm::LLVMContext& context,
                                             llvm::TargetMachine& machine) {
  std::unique_ptr<llvm::Module> module =
      llvm_backend::emit_module(program, target, options, context, machine.createDataLayout());
  std::string errors;
  llvm::raw_string_ostream stream(errors);
  BC_CHECK(!llvm::verifyModule(*module, &stream), "program {} made a broken module: {}",
           program.name, errors);
  llvm_backend::run_passes(*module, machine, options.level);
  return module;
}

}  // namespace

std::string kernel_symbol(const loop::Program& program, const std::string& kernel) {
  return program.name + "_k_" + kernel;
}

ObjectFile emit_object(const loop::Program& program, const TargetInfo& target,
                       const LlvmOptions& options) {
  llvm::LLVMContext context;
  context.setDiscardValueNames(true);
  const std::unique_ptr<llvm::TargetMachine> machine =
      llvm_backend::make_target_machine(target, options.level);
  const std::unique_ptr<llvm::Module> module =
      checked_module(program, target, options, context, *machine);
  return llvm_backend::generate_object(*module, *machine);
}

std::string emit_llvm_text(const loop::Program& program, const TargetInfo& target,
                           const LlvmOptions& options) {
  llvm::LLVMContext context;
  const std::unique_ptr<llvm::TargetMachine> machine =
      llvm_backend::make_target_machine(target, options.level);
  const std::unique_ptr<llvm::Module> module =
      checked_module(program, target, options, context, *machine);
  std::string text;
  llvm::raw_string_ostream stream(text);
  module->print(stream, nullptr);
  return text;
}

}  // namespace backcast
