// See narrow_loads.h.
#include "backend/llvm/narrow_loads.h"

#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicsARM.h>

#include "backend/llvm/registers.h"
#include "backend/llvm/replace_instructions.h"

namespace backcast::llvm_backend {
namespace {

constexpr uint64_t kHalfRegister = 64, kWord = 32;  // bits

/// Eight bytes of which a load gives the first four.
llvm::Value* load_word(Builder& builder, llvm::LoadInst& load) {
  auto* words = llvm::FixedVectorType::get(builder.getInt32Ty(), 2);
  llvm::Value* word =
      builder.CreateAlignedLoad(builder.getInt32Ty(), load.getPointerOperand(), load.getAlign());
  llvm::Value* both = builder.CreateInsertElement(llvm::PoisonValue::get(words), word, uint64_t{0});
  return builder.CreateBitCast(both, llvm::FixedVectorType::get(builder.getInt8Ty(), 8));
}

/// What takes the place of loaded integers that become wider ones, or floats; null: nothing.
llvm::Value* replacement(llvm::Instruction& conversion) {
  const bool is_signed = llvm::isa<llvm::SExtInst, llvm::SIToFPInst>(conversion);
  if (!is_signed && !llvm::isa<llvm::ZExtInst, llvm::UIToFPInst>(conversion)) return nullptr;
  auto* load = llvm::dyn_cast<llvm::LoadInst>(conversion.getOperand(0));
  auto* type = load == nullptr ? nullptr : llvm::dyn_cast<llvm::FixedVectorType>(load->getType());
  if (type == nullptr) return nullptr;
  const uint64_t bits = type->getPrimitiveSizeInBits(), element = type->getScalarSizeInBits();
  if (load->getAlign().value() * 8 >= bits || element > 16) return nullptr;
  Builder builder(load);
  llvm::Value* loaded = nullptr;
  if (bits == kHalfRegister) {
    loaded = builder.CreateIntrinsic(
        llvm::Intrinsic::arm_neon_vld1, {type, load->getPointerOperandType()},
        {load->getPointerOperand(),
         builder.getInt32(static_cast<uint32_t>(load->getAlign().value()))});
  } else if (bits == kWord && element == 8) {
    llvm::Type* halves = llvm::FixedVectorType::get(builder.getInt16Ty(), 8);
    loaded = part(builder, builder.CreateIntCast(load_word(builder, *load), halves, is_signed), 0,
                  static_cast<int32_t>(type->getNumElements()));
  } else {
    return nullptr;
  }
  if (conversion.getType()->isIntOrIntVectorTy()) {
    return builder.CreateIntCast(loaded, conversion.getType(), is_signed);
  }
  loaded = builder.CreateIntCast(loaded, type->getWithNewBitWidth(32), is_signed);
  return is_signed ? builder.CreateSIToFP(loaded, conversion.getType())
                   : builder.CreateUIToFP(loaded, conversion.getType());
}

}  // namespace

void emit_narrow_loads(llvm::Module& module, const llvm::TargetMachine& machine) {
  if (!machine.getTargetTriple().isARM()) return;
  if (!machine.getTargetFeatureString().contains("+neon")) return;
  replace_instructions(module, replacement);
}

}  // namespace backcast::llvm_backend
