// Bytes looked up among 256, which four registers hold (operations.h).
#include <llvm/IR/IntrinsicsX86.h>

#include <numeric>

#include "backend/llvm/operations.h"
#include "backend/llvm/registers.h"

namespace backcast::llvm_backend {
namespace {

constexpr int32_t kRegister = 64;  // bytes

/// Each half of the table is two registers, of which an instruction takes what 7 bits tell; the
/// eighth tells the half.
llvm::Value* look_up_register(Builder& builder, llvm::Value* table, llvm::Value* places) {
  llvm::Type* type = llvm::FixedVectorType::get(builder.getInt8Ty(), kRegister);
  const auto quarter = [&](uint64_t number) {
    llvm::Value* first = builder.CreateConstInBoundsGEP1_64(type, table, number);
    return builder.CreateAlignedLoad(type, first, llvm::Align(1));
  };
  const auto half = [&](uint64_t first) {
    return builder.CreateIntrinsic(llvm::Intrinsic::x86_avx512_vpermi2var_qi_512, {},
                                   {quarter(first), places, quarter(first + 1)});
  };
  llvm::Value* upper = builder.CreateICmpSLT(places, llvm::Constant::getNullValue(type));
  return builder.CreateSelect(upper, half(2), half(0));
}

}  // namespace

llvm::Value* emit_byte_look_up(Builder& builder, llvm::Value* table, llvm::Value* places) {
  const int32_t lanes = lanes_of(places);
  std::vector<llvm::Value*> found;
  for (int32_t first = 0; first < lanes; first += kRegister) {
    found.push_back(look_up_register(builder, table, part(builder, places, first, kRegister)));
  }
  std::vector<int32_t> taken(static_cast<size_t>(lanes));
  std::iota(taken.begin(), taken.end(), 0);
  return emit_shuffle(builder, found, taken);
}

}  // namespace backcast::llvm_backend
