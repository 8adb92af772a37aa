// See fixed_point.h.
#include "backend/llvm/fixed_point.h"

#include <llvm/ADT/APFloat.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicsARM.h>

#include <optional>

#include "backend/llvm/registers.h"
#include "backend/llvm/replace_instructions.h"

namespace backcast::llvm_backend {
namespace {

constexpr int kLanes = 4;

/// n where every lane of a value is 2^n.
std::optional<int> exponent_of(const llvm::Value* value) {
  const auto* constant = llvm::dyn_cast<llvm::Constant>(value);
  const auto* splat = constant == nullptr
                          ? nullptr
                          : llvm::dyn_cast_or_null<llvm::ConstantFP>(constant->getSplatValue(true));
  if (splat == nullptr) return std::nullopt;
  const int exponent = splat->getValueAPF().getExactLog2();
  if (exponent == INT_MIN) return std::nullopt;
  return exponent;
}

/// A vector of floats times 2^exponent.
struct Scaled {
  llvm::Value* value = nullptr;
  int exponent = 0;
};

std::optional<Scaled> scaled(llvm::Value* value) {
  const auto* operation = llvm::dyn_cast<llvm::BinaryOperator>(value);
  const auto* type = llvm::dyn_cast<llvm::FixedVectorType>(value->getType());
  if (operation == nullptr || type == nullptr || !type->getElementType()->isFloatTy()) {
    return std::nullopt;
  }
  llvm::Value* a = operation->getOperand(0);
  llvm::Value* b = operation->getOperand(1);
  if (operation->getOpcode() == llvm::Instruction::FAdd && a == b) return Scaled{a, 1};
  if (operation->getOpcode() == llvm::Instruction::FDiv) {
    if (const std::optional<int> exponent = exponent_of(b)) return Scaled{a, -*exponent};
  }
  if (operation->getOpcode() != llvm::Instruction::FMul) return std::nullopt;
  if (const std::optional<int> exponent = exponent_of(b)) return Scaled{a, *exponent};
  if (const std::optional<int> exponent = exponent_of(a)) return Scaled{b, *exponent};
  return std::nullopt;
}

/// The instruction on registers of four lanes.
llvm::Value* converted(Builder& builder, llvm::Value* value, llvm::Type* element, bool is_unsigned,
                       int bits) {
  llvm::Type* type = llvm::FixedVectorType::get(element, kLanes);
  return by_registers(builder, kLanes, value, value, [&](llvm::Value* x, llvm::Value*) {
    return builder.CreateIntrinsic(
        llvm::Intrinsic::arm_mve_vcvt_fix, {type, x->getType()},
        {builder.getInt32(is_unsigned), x, builder.getInt32(static_cast<uint32_t>(bits))});
  });
}

/// What takes the place of an integer times 2^-n, or of 2^n times a float as an integer.
llvm::Value* replacement(llvm::Instruction& instruction) {
  constexpr int kMostBits = 32;
  Builder builder(&instruction);
  const bool to_unsigned = llvm::isa<llvm::FPToUIInst>(instruction);
  if (to_unsigned || llvm::isa<llvm::FPToSIInst>(instruction)) {
    const std::optional<Scaled> factor = scaled(instruction.getOperand(0));
    if (!factor || factor->exponent < 1 || factor->exponent > kMostBits) return nullptr;
    llvm::Value* word =
        converted(builder, factor->value, builder.getInt32Ty(), to_unsigned, factor->exponent);
    return builder.CreateTrunc(word, instruction.getType());
  }
  const std::optional<Scaled> factor = scaled(&instruction);
  if (!factor || factor->exponent > -1 || factor->exponent < -kMostBits) return nullptr;
  const bool from_unsigned = llvm::isa<llvm::UIToFPInst>(factor->value);
  if (!from_unsigned && !llvm::isa<llvm::SIToFPInst>(factor->value)) return nullptr;
  llvm::Value* integer = llvm::cast<llvm::Instruction>(factor->value)->getOperand(0);
  if (integer->getType()->getScalarSizeInBits() > 32) return nullptr;
  llvm::Type* words = integer->getType()->getWithNewBitWidth(32);
  integer = builder.CreateIntCast(integer, words, !from_unsigned);
  return converted(builder, integer, builder.getFloatTy(), from_unsigned, -factor->exponent);
}

}  // namespace

void emit_fixed_point(llvm::Module& module, const llvm::TargetMachine& machine) {
  if (!machine.getTargetFeatureString().contains("+mve.fp")) return;
  replace_instructions(module, replacement);
}

}  // namespace backcast::llvm_backend
