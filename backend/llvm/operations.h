// Internal to backend/llvm: types and single operations of the loop IR as LLVM instructions. Every
// function emits at the builder's position.
#pragma once

#include <llvm/IR/IRBuilder.h>

#include "ir/loop/expr.h"
#include "ir/target/target_info.h"

namespace backcast::llvm_backend {

using Builder = llvm::IRBuilder<>;

/// The types of one module: index has the target's pointer width, bool is i1 as a value and i8 in
/// memory, f16 and bf16 are their bits.
class Types {
 public:
  Types(llvm::LLVMContext& context, const TargetInfo& target)
      : context_(context), target_(target) {}

  llvm::Type* scalar(loop::Scalar s) const;
  llvm::Type* value(loop::Type t) const;   // in registers
  llvm::Type* memory(loop::Type t) const;  // what loads and stores move
  llvm::IntegerType* index() const;
  int64_t memory_bytes(loop::Scalar s) const;
  const TargetInfo& target() const { return target_; }

 private:
  llvm::LLVMContext& context_;
  const TargetInfo& target_;
};

bool is_signed(loop::Scalar s);

llvm::Value* emit_constant(const Types& types, const loop::ExprNode& node);
llvm::Value* emit_unary(Builder& builder, const Types& types, loop::Op op, loop::Scalar scalar,
                        llvm::Value* a);
/// `scalar` is the operands' element type.
llvm::Value* emit_binary(Builder& builder, const Types& types, loop::Op op, loop::Scalar scalar,
                         llvm::Value* a, llvm::Value* b);
/// even_bytes or odd_bytes of i32, on any number of lanes.
llvm::Value* emit_byte_pair(Builder& builder, const Types& types, loop::Op op, llvm::Value* a);
/// dot2 of i32, on any number of lanes.
llvm::Value* emit_pair_product(Builder& builder, const Types& types, llvm::Value* a,
                               llvm::Value* b);
/// All lanes of dot4_signed added up, where the target does that (sums_byte_products).
llvm::Value* emit_summed_byte_product(Builder& builder, llvm::Value* a, llvm::Value* b);
/// dot4 or dot4_signed of i32, on any number of lanes.
llvm::Value* emit_byte_product(Builder& builder, const Types& types, loop::Op op, llvm::Value* a,
                               llvm::Value* b);
/// a + b in one instruction where one of them is a product of words whose instruction adds as well;
/// else null.
llvm::Value* emit_product_sum(Builder& builder, llvm::Value* a, llvm::Value* b);
/// table[place] of bytes, on any number of lanes; the table has an element for every byte. Of
/// x86-64 with vpermi2b.
llvm::Value* emit_byte_look_up(Builder& builder, llvm::Value* table, llvm::Value* places);
llvm::Value* emit_fma(Builder& builder, const Types& types, loop::Scalar scalar, llvm::Value* a,
                      llvm::Value* b, llvm::Value* c);
llvm::Value* emit_cast(Builder& builder, const Types& types, loop::Type from, loop::Type to,
                       llvm::Value* a);
llvm::Value* emit_shuffle(Builder& builder, const std::vector<llvm::Value*>& args,
                          const std::vector<int32_t>& indices);
llvm::Value* emit_reduce_lanes(Builder& builder, const Types& types, loop::Op op,
                               loop::Scalar scalar, llvm::Value* a);
/// Between a value and its form in memory (bool: i1 and i8).
llvm::Value* to_memory(Builder& builder, const Types& types, loop::Type type, llvm::Value* value);
llvm::Value* from_memory(Builder& builder, loop::Type type, llvm::Value* value);

/// Lanes of a vector value, 1 for others.
int32_t lanes_of(const llvm::Value* value);

}  // namespace backcast::llvm_backend
