// dot2, even_bytes and odd_bytes (operations.h): instructions on x86 and on Arm with DSP, shifts
// and products elsewhere.
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/IntrinsicsARM.h>
#include <llvm/IR/IntrinsicsX86.h>

#include <bit>
#include <numeric>

#include "backend/llvm/operations.h"
#include "ir/graph/error.h"

namespace backcast::llvm_backend {
namespace {

llvm::Value* by_halves(Builder& builder, llvm::Value* a, llvm::Value* b) {
  const auto low = [&](llvm::Value* word) {
    return builder.CreateAShr(builder.CreateShl(word, uint64_t{16}), uint64_t{16});
  };
  llvm::Value* product = builder.CreateMul(low(a), low(b));
  llvm::Value* high =
      builder.CreateMul(builder.CreateAShr(a, uint64_t{16}), builder.CreateAShr(b, uint64_t{16}));
  return builder.CreateAdd(product, high);
}

/// Lanes [first, first + lanes) of a value; what lies beyond it is undefined.
llvm::Value* part(Builder& builder, llvm::Value* value, int32_t first, int32_t lanes) {
  std::vector<int> indices(static_cast<size_t>(lanes));
  std::iota(indices.begin(), indices.end(), first);
  for (int& index : indices) index = index < lanes_of(value) ? index : -1;
  return builder.CreateShuffleVector(value, indices);
}

/// pmaddwd on whole registers of `widest` lanes, halves of them, quarters.
llvm::Value* emit_pmaddwd(Builder& builder, int32_t widest, llvm::Value* a, llvm::Value* b) {
  const int32_t lanes = lanes_of(a);
  const auto whole =
      static_cast<int32_t>(std::bit_ceil(std::max(4U, static_cast<unsigned>(lanes))));
  if (lanes < whole) {
    llvm::Value* product =
        emit_pmaddwd(builder, widest, part(builder, a, 0, whole), part(builder, b, 0, whole));
    return part(builder, product, 0, lanes);
  }
  if (lanes > widest) {
    llvm::Value* halves[2];
    for (const int32_t side : {0, 1}) {
      const int32_t first = side * lanes / 2;
      halves[side] = emit_pmaddwd(builder, widest, part(builder, a, first, lanes / 2),
                                  part(builder, b, first, lanes / 2));
    }
    std::vector<int> all(static_cast<size_t>(lanes));
    std::iota(all.begin(), all.end(), 0);
    return builder.CreateShuffleVector(halves[0], halves[1], all);
  }
  const llvm::Intrinsic::ID id = lanes == 4   ? llvm::Intrinsic::x86_sse2_pmadd_wd
                                 : lanes == 8 ? llvm::Intrinsic::x86_avx2_pmadd_wd
                                              : llvm::Intrinsic::x86_avx512_pmaddw_d_512;
  llvm::Type* pairs =
      llvm::FixedVectorType::get(builder.getInt16Ty(), static_cast<unsigned>(2 * lanes));
  return builder.CreateIntrinsic(
      id, {}, {builder.CreateBitCast(a, pairs), builder.CreateBitCast(b, pairs)});
}

/// A register holds one pair: lanes one by one.
llvm::Value* emit_smuad(Builder& builder, llvm::Value* a, llvm::Value* b) {
  const int32_t lanes = lanes_of(a);
  if (lanes == 1) return builder.CreateIntrinsic(llvm::Intrinsic::arm_smuad, {}, {a, b});
  llvm::Value* result = llvm::PoisonValue::get(a->getType());
  for (int32_t lane = 0; lane < lanes; ++lane) {
    const auto at = static_cast<uint64_t>(lane);
    llvm::Value* product = emit_smuad(builder, builder.CreateExtractElement(a, at),
                                      builder.CreateExtractElement(b, at));
    result = builder.CreateInsertElement(result, product, at);
  }
  return result;
}

bool is_arm(const TargetInfo& target) {
  return target.architecture == Architecture::thumb || target.architecture == Architecture::arm;
}

/// Bytes 1 and 3 of a word.
llvm::Value* odd_bytes(Builder& builder, llvm::Value* word) {
  const auto masked = [&](llvm::Value* value, uint32_t mask) {
    return builder.CreateAnd(value, llvm::ConstantInt::get(value->getType(), mask));
  };
  llvm::Value* low = builder.CreateAShr(builder.CreateShl(word, uint64_t{16}), uint64_t{24});
  llvm::Value* high = builder.CreateAShr(word, uint64_t{8});
  return builder.CreateOr(masked(low, 0xffff), masked(high, 0xffff0000));
}

}  // namespace

llvm::Value* emit_byte_pair(Builder& builder, const Types& types, loop::Op op, llvm::Value* a) {
  const bool even = op == loop::Op::even_bytes;
  const TargetInfo& target = types.target();
  if (!target.pair_products || !is_arm(target) || lanes_of(a) > 1) {
    return odd_bytes(builder, even ? builder.CreateShl(a, uint64_t{8}) : a);
  }
  // sxtb16 rotates its operand at no cost.
  llvm::Value* word =
      even ? a
           : builder.CreateIntrinsic(llvm::Intrinsic::fshr, {a->getType()},
                                     {a, a, llvm::ConstantInt::get(a->getType(), 8)});
  return builder.CreateIntrinsic(llvm::Intrinsic::arm_sxtb16, {}, {word});
}

llvm::Value* emit_pair_product(Builder& builder, const Types& types, llvm::Value* a,
                               llvm::Value* b) {
  const TargetInfo& target = types.target();
  if (!target.pair_products) return by_halves(builder, a, b);
  if (target.architecture == Architecture::x86_64) {
    if (lanes_of(a) == 1) return by_halves(builder, a, b);
    return emit_pmaddwd(builder, target.vector_lanes(4), a, b);
  }
  BC_CHECK(is_arm(target), "{} has pair products of a kind unknown here", target.name);
  return emit_smuad(builder, a, b);
}

llvm::Value* emit_product_sum(Builder& builder, llvm::Value* a, llvm::Value* b) {
  for (const auto& [product, other] : {std::pair(b, a), std::pair(a, b)}) {
    const auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(product);
    if (call == nullptr || call->getIntrinsicID() != llvm::Intrinsic::arm_smuad) continue;
    return builder.CreateIntrinsic(llvm::Intrinsic::arm_smlad, {},
                                   {call->getArgOperand(0), call->getArgOperand(1), other});
  }
  return nullptr;
}

}  // namespace backcast::llvm_backend
