// Kernels whose iterations a caller may share out (loop::Step::grain). Internal to backend/llvm.
#pragma once

#include <llvm/IR/Module.h>

#include <vector>

#include "backend/llvm/operations.h"
#include "ir/target/target_info.h"

namespace backcast::llvm_backend {

/// A kernel's arguments but for the range, as they lie in a closure.
llvm::StructType* closure_type(const llvm::Function& kernel);

/// Room for the closure of any of `kernels`, on the frame of `entry`.
llvm::Value* closure_room(const std::vector<const llvm::Function*>& kernels, llvm::Function& entry);

/// The bc_loop_body of a kernel, made at its first use: does the iterations of a range on the
/// arguments that lie in the closure.
llvm::Function* piece_function(llvm::Function& kernel, const TargetInfo& target);

/// How a call is shared out.
struct Sharing {
  llvm::Value* parallel_for = nullptr;  // the caller's; null at run time: the kernel does all
  llvm::Value* user = nullptr;
  llvm::Value* closure = nullptr;  // from closure_room()
  int64_t grain = 1;
};
/// parallel_for(user, count, grain, piece, closure) where the caller has one, else the kernel.
void emit_shared_call(const Sharing& sharing, llvm::Function& kernel,
                      llvm::ArrayRef<llvm::Value*> arguments, const TargetInfo& target,
                      Builder& builder);

}  // namespace backcast::llvm_backend
