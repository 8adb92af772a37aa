// Internal to backend/llvm: which parameters of a kernel share memory with no other.
#pragma once

#include <vector>

#include "ir/loop/program.h"

namespace backcast::llvm_backend {

/// Per BufferParam: whether in no call of this kernel its storage overlaps another argument's, one
/// of the two being written (LLVM's `noalias`). Inputs and outputs of an entry point are distinct
/// by contract. Storage counts at the symbols' maxima.
std::vector<bool> exclusive_buffers(const loop::Program& program, const loop::Kernel& kernel);

}  // namespace backcast::llvm_backend
