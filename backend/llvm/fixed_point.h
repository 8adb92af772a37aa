// Internal to backend/llvm: conversions between integers and fractions of a power of two.
#pragma once

#include <llvm/IR/Module.h>
#include <llvm/Target/TargetMachine.h>

namespace backcast::llvm_backend {

/// Writes integers times 2^-n, and floats times 2^n cut to integers, as the one instruction that
/// MVE has for each. LLVM 19 finds these pairs by itself, but hands n over as a constant that it
/// may put into a register where the instruction has its immediate (ARMISelDAGToDAG.cpp,
/// transformFixedFloatingPointConversion), which gives another n. Nothing on other machines.
void emit_fixed_point(llvm::Module& module, const llvm::TargetMachine& machine);

}  // namespace backcast::llvm_backend
