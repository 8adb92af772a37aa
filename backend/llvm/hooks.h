// Internal to backend/llvm: what a library does to tell the hooks of bc_context of its steps.
#pragma once

#include <llvm/IR/Module.h>

#include "backend/library/abi.h"
#include "backend/llvm/operations.h"

namespace backcast::llvm_backend {

/// void <library>_hooks(const bc_context *context, int32_t done, int32_t next): calls after_kernel
/// for step `done` and before_kernel for step `next`, where the context has them and the number is
/// not kNoStep. The context is null or has all of its members. `names`: of steps, else null.
llvm::Function* emit_hooks(const Abi& abi, const Types& types, bool names, llvm::Module& module);
inline constexpr int32_t kNoStep = -1;

/// Where bc_context has its members, in bytes: {uint32_t struct_bytes, flags; void *user;
/// parallel_for; before_kernel; after_kernel}.
struct ContextLayout {
  explicit ContextLayout(int64_t pointer_bytes)
      : parallel_for(user + pointer_bytes),
        before_kernel(user + 2 * pointer_bytes),
        after_kernel(user + 3 * pointer_bytes),
        bytes(user + 4 * pointer_bytes) {}
  int64_t user = 8;
  int64_t parallel_for, before_kernel, after_kernel, bytes;
};

}  // namespace backcast::llvm_backend
