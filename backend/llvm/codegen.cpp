// See codegen.h. The frame of each function comes from the code generator itself: the attribute
// "warn-stack-size" makes it report every frame through the context's diagnostics.
#include "backend/llvm/codegen.h"

#include <llvm/CodeGen/MachineFrameInfo.h>
#include <llvm/CodeGen/MachineFunction.h>
#include <llvm/CodeGen/MachineModuleInfo.h>
#include <llvm/CodeGen/TargetFrameLowering.h>
#include <llvm/CodeGen/TargetSubtargetInfo.h>
#include <llvm/IR/DiagnosticInfo.h>
#include <llvm/IR/DiagnosticPrinter.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/MC/MCAsmInfo.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/SmallVectorMemoryBuffer.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/raw_ostream.h>

#include <functional>
#include <mutex>

#include "ir/graph/error.h"

namespace backcast::llvm_backend {
namespace {

void initialize_targets() {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    LLVMInitializeARMTargetInfo();
    LLVMInitializeARMTarget();
    LLVMInitializeARMTargetMC();
    LLVMInitializeARMAsmPrinter();
    LLVMInitializeAArch64TargetInfo();
    LLVMInitializeAArch64Target();
    LLVMInitializeAArch64TargetMC();
    LLVMInitializeAArch64AsmPrinter();
    LLVMInitializeRISCVTargetInfo();
    LLVMInitializeRISCVTarget();
    LLVMInitializeRISCVTargetMC();
    LLVMInitializeRISCVAsmPrinter();
    LLVMInitializeWebAssemblyTargetInfo();
    LLVMInitializeWebAssemblyTarget();
    LLVMInitializeWebAssemblyTargetMC();
    LLVMInitializeWebAssemblyAsmPrinter();
  });
}

llvm::TargetOptions target_options(const TargetInfo& target) {
  llvm::TargetOptions options;
  // `fma` is the only fused operation.
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;
  options.FunctionSections = true;
  options.MCOptions.AsmVerbose = false;
  if (target.abi == "hard") options.FloatABIType = llvm::FloatABI::Hard;
  if (target.abi == "soft") options.FloatABIType = llvm::FloatABI::Soft;
  const bool arm =
      target.architecture == Architecture::arm || target.architecture == Architecture::thumb;
  if (arm) options.MCOptions.ABIName = "aapcs";
  if (!arm && !target.abi.empty()) options.MCOptions.ABIName = target.abi;
  return options;
}

bool is_bare_metal(const llvm::Triple& triple) { return triple.getOS() == llvm::Triple::UnknownOS; }

/// Compiler helpers (soft float, division) and memcpy, which have frames of their own.
constexpr int64_t kHelperStack = 192;
/// Return address, and padding where a frame is realigned for vectors.
int64_t frame_overhead(const llvm::Triple& triple) { return is_bare_metal(triple) ? 8 : 72; }

/// Deepest stack from `function` down; the call graph has no cycles.
int64_t stack_from(const llvm::Function& function, const std::map<std::string, int64_t>& frames,
                   int64_t overhead, std::map<const llvm::Function*, int64_t>& known) {
  const auto found = known.find(&function);
  if (found != known.end()) return found->second;
  int64_t deepest = kHelperStack;
  for (const llvm::BasicBlock& block : function) {
    for (const llvm::Instruction& instruction : block) {
      // What is called, and what is handed to the caller's parallel_for.
      for (const llvm::Use& operand : instruction.operands()) {
        const auto* callee = llvm::dyn_cast<llvm::Function>(operand);
        if (callee == nullptr || callee->isDeclaration()) continue;
        deepest = std::max(deepest, stack_from(*callee, frames, overhead, known));
      }
    }
  }
  const auto frame = frames.find(function.getName().str());
  const int64_t own = frame == frames.end() ? 0 : frame->second;
  return known[&function] = own + overhead + deepest;
}

}  // namespace

std::unique_ptr<llvm::TargetMachine> make_target_machine(const TargetInfo& target, int level) {
  initialize_targets();
  std::string error;
  const llvm::Target* llvm_target = llvm::TargetRegistry::lookupTarget(target.triple, error);
  if (llvm_target == nullptr) {
    throw CompileError(
        fmt::format("target {}: LLVM does not know {}: {}", target.name, target.triple, error));
  }
  const llvm::Triple triple(target.triple);
  const llvm::Reloc::Model relocation =
      is_bare_metal(triple) ? llvm::Reloc::Static : llvm::Reloc::PIC_;
  const bool riscv = triple.isRISCV();
  std::optional<llvm::CodeModel::Model> code_model;
  if (riscv) code_model = llvm::CodeModel::Medium;  // any address, relative to the counter
  std::unique_ptr<llvm::TargetMachine> machine(llvm_target->createTargetMachine(
      target.triple, target.cpu, target.features, target_options(target), relocation, code_model,
      level == 0 ? llvm::CodeGenOptLevel::None : llvm::CodeGenOptLevel::Default));
  BC_CHECK(machine != nullptr, "LLVM made no target machine for {}", target.name);
  if (triple.isARM() || triple.isThumb()) {
    // Nothing unwinds, so ARM's table of 8 bytes per function is left out, as gcc does for C. The
    // target's options have no way to say so.
    const_cast<llvm::MCAsmInfo*>(machine->getMCAsmInfo())
        ->setExceptionsType(llvm::ExceptionHandling::None);
  }
  return machine;
}

namespace {

/// Bits of RISC-V's vector registers that the stack is promised for: a library for some VLEN runs
/// where they are longer, and spills them whole. In slots they count in blocks of 64 bits.
constexpr int64_t kLongestRegister = 1024;

/// What the diagnostics need to tell the frame of a function.
struct FrameReader {
  std::map<std::string, int64_t>& frames;
  const llvm::MachineModuleInfo& functions;
};

/// Arguments on the stack that a call pushes, or makes room for, when it happens: LLVM's size of
/// the frame leaves them out unless the frame reserves their place.
int64_t pushed_bytes(const llvm::MachineFunction& function) {
  const llvm::MachineFrameInfo& frame = function.getFrameInfo();
  const llvm::TargetFrameLowering& lowering = *function.getSubtarget().getFrameLowering();
  if (!frame.isMaxCallFrameSizeComputed() || lowering.hasReservedCallFrame(function)) return 0;
  return static_cast<int64_t>(frame.getMaxCallFrameSize());
}

/// Scalable slots (spilled RISC-V vector registers) have an area of their own in the frame, which
/// LLVM's size of it leaves out.
int64_t scalable_bytes(const llvm::MachineFunction& function) {
  const llvm::MachineFrameInfo& frame = function.getFrameInfo();
  uint64_t bytes = 0;
  for (int slot = frame.getObjectIndexBegin(); slot < frame.getObjectIndexEnd(); ++slot) {
    if (frame.isDeadObjectIndex(slot)) continue;
    if (frame.getStackID(slot) != llvm::TargetStackID::ScalableVector) continue;
    const llvm::Align alignment = std::max(frame.getObjectAlign(slot), llvm::Align(8));
    bytes = llvm::alignTo(bytes + static_cast<uint64_t>(frame.getObjectSize(slot)), alignment);
  }
  if (bytes == 0) return 0;
  // The area ends at a multiple of the stack's alignment.
  return static_cast<int64_t>(llvm::alignTo(bytes, llvm::Align(16))) * (kLongestRegister / 64);
}

}  // namespace

ObjectFile generate_object(llvm::Module& module, llvm::TargetMachine& machine) {
  ObjectFile object;
  // The pass manager owns it.
  auto* functions =
      new llvm::MachineModuleInfoWrapperPass(static_cast<llvm::LLVMTargetMachine*>(&machine));
  FrameReader reader{object.frames, functions->getMMI()};
  module.getContext().setDiagnosticHandlerCallBack(
      [](const llvm::DiagnosticInfo* info, void* context) {
        if (const auto* stack = llvm::dyn_cast<llvm::DiagnosticInfoStackSize>(info)) {
          const FrameReader& reader = *static_cast<FrameReader*>(context);
          const llvm::Function& function = stack->getFunction();
          const llvm::MachineFunction& machine = *reader.functions.getMachineFunction(function);
          reader.frames[function.getName().str()] = static_cast<int64_t>(stack->getStackSize()) +
                                                    pushed_bytes(machine) + scalable_bytes(machine);
          return;
        }
        std::string text;
        llvm::raw_string_ostream stream(text);
        llvm::DiagnosticPrinterRawOStream printer(stream);
        info->print(printer);
        BC_CHECK(info->getSeverity() != llvm::DS_Error, "LLVM: {}", text);
      },
      &reader);
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  llvm::legacy::PassManager passes;
  const bool failed = machine.addPassesToEmitFile(
      passes, stream, nullptr, llvm::CodeGenFileType::ObjectFile, false, functions);
  BC_CHECK(!failed, "LLVM cannot write objects for {}", machine.getTargetTriple().str());
  passes.run(module);
  object.bytes.assign(bytes.begin(), bytes.end());
  std::map<const llvm::Function*, int64_t> known;
  const int64_t overhead = frame_overhead(machine.getTargetTriple());
  for (const llvm::Function& function : module) {
    if (function.isDeclaration()) continue;
    object.frames.try_emplace(function.getName().str(), 0);
    object.stack_bytes =
        std::max(object.stack_bytes, stack_from(function, object.frames, overhead, known));
  }
  return object;
}

}  // namespace backcast::llvm_backend
