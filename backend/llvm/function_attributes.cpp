// See function_attributes.h.
#include "backend/llvm/function_attributes.h"

namespace backcast::llvm_backend {

void set_function_attributes(llvm::Function& function, const TargetInfo& target) {
  std::string cpu = target.cpu;
  std::string features = target.features;
  // The scheduling model of Cortex-M4, which LLVM also takes for Cortex-M33, puts an addition right
  // behind the multiplication it waits for (3.7 instead of 3.0 cycles per multiply-accumulate);
  // Cortex-M7's does not. The instruction sets stay what they are.
  if (target.cpu == "cortex-m4") {
    cpu = "cortex-m7";
    features = "-fp-armv8d16,-fp-armv8d16sp,-fp64,+vfp4d16sp,+slowfpvmlx,+slowfpvfmx";
  } else if (target.cpu == "cortex-m33") {
    cpu = "cortex-m7";
    features = "-fp-armv8d16,-fp64,+fp-armv8d16sp,+slowfpvmlx,+slowfpvfmx";
  }
  function.addFnAttr("target-cpu", cpu);
  if (!features.empty()) function.addFnAttr("target-features", features);
  function.addFnAttr("no-builtins");
  function.addFnAttr("frame-pointer", "none");
  // Makes the code generator report every frame; see codegen.cpp.
  function.addFnAttr("warn-stack-size", "0");
  function.addFnAttr(llvm::Attribute::NoUnwind);
  function.setDSOLocal(true);
}

}  // namespace backcast::llvm_backend
