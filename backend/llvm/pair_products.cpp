// dot2, dot4, dot4_signed, even_bytes and odd_bytes (operations.h): instructions where the target
// has them, shifts and products elsewhere.
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/IntrinsicsAArch64.h>
#include <llvm/IR/IntrinsicsARM.h>
#include <llvm/IR/IntrinsicsWebAssembly.h>
#include <llvm/IR/IntrinsicsX86.h>

#include <optional>

#include "backend/llvm/operations.h"
#include "backend/llvm/registers.h"
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

llvm::Type* lanes_of_bits(Builder& builder, unsigned bits, int32_t lanes) {
  return llvm::FixedVectorType::get(builder.getIntNTy(bits), static_cast<unsigned>(lanes));
}

llvm::Value* emit_pmaddwd(Builder& builder, llvm::Value* a, llvm::Value* b) {
  const int32_t lanes = lanes_of(a);
  const llvm::Intrinsic::ID id = lanes == 4   ? llvm::Intrinsic::x86_sse2_pmadd_wd
                                 : lanes == 8 ? llvm::Intrinsic::x86_avx2_pmadd_wd
                                              : llvm::Intrinsic::x86_avx512_pmaddw_d_512;
  llvm::Type* pairs = lanes_of_bits(builder, 16, 2 * lanes);
  return builder.CreateIntrinsic(
      id, {}, {builder.CreateBitCast(a, pairs), builder.CreateBitCast(b, pairs)});
}

llvm::Value* emit_wasm_dot(Builder& builder, llvm::Value* a, llvm::Value* b) {
  llvm::Type* pairs = lanes_of_bits(builder, 16, 8);
  return builder.CreateIntrinsic(
      llvm::Intrinsic::wasm_dot, {},
      {builder.CreateBitCast(a, pairs), builder.CreateBitCast(b, pairs)});
}

// ---- bytes -----------------------------------------------------------------------------------

llvm::Value* by_bytes(Builder& builder, loop::Op op, llvm::Value* a, llvm::Value* b) {
  llvm::Value* sum = nullptr;
  for (const uint64_t up : {24, 16, 8, 0}) {
    llvm::Value* top = builder.CreateShl(a, up);
    llvm::Value* x = op == loop::Op::dot4 ? builder.CreateLShr(top, uint64_t{24})
                                          : builder.CreateAShr(top, uint64_t{24});
    llvm::Value* product =
        builder.CreateMul(x, builder.CreateAShr(builder.CreateShl(b, up), uint64_t{24}));
    sum = sum == nullptr ? product : builder.CreateAdd(sum, product);
  }
  return sum;
}

llvm::Intrinsic::ID vpdpbusd_of(int32_t lanes) {
  return lanes == 4   ? llvm::Intrinsic::x86_avx512_vpdpbusd_128
         : lanes == 8 ? llvm::Intrinsic::x86_avx512_vpdpbusd_256
                      : llvm::Intrinsic::x86_avx512_vpdpbusd_512;
}

llvm::Value* emit_vpdpbusd(Builder& builder, llvm::Value* sum, llvm::Value* a, llvm::Value* b) {
  return builder.CreateIntrinsic(vpdpbusd_of(lanes_of(a)), {}, {sum, a, b});
}

/// usdot or sdot.
llvm::Value* emit_dot(Builder& builder, loop::Op op, llvm::Value* sum, llvm::Value* a,
                      llvm::Value* b) {
  llvm::Type* bytes = lanes_of_bits(builder, 8, 16);
  const llvm::Intrinsic::ID id = op == loop::Op::dot4 ? llvm::Intrinsic::aarch64_neon_usdot
                                                      : llvm::Intrinsic::aarch64_neon_sdot;
  return builder.CreateIntrinsic(
      id, {a->getType(), bytes},
      {sum, builder.CreateBitCast(a, bytes), builder.CreateBitCast(b, bytes)});
}

/// The operand of an instruction that adds products up which is their sum; nothing of others.
std::optional<unsigned> sum_operand(llvm::Intrinsic::ID id) {
  if (id == llvm::Intrinsic::arm_mve_vmldava) return 3;
  const bool is_first = id == llvm::Intrinsic::x86_avx512_vpdpbusd_128 ||
                        id == llvm::Intrinsic::x86_avx512_vpdpbusd_256 ||
                        id == llvm::Intrinsic::x86_avx512_vpdpbusd_512 ||
                        id == llvm::Intrinsic::aarch64_neon_usdot ||
                        id == llvm::Intrinsic::aarch64_neon_sdot;
  return is_first ? std::optional<unsigned>(0) : std::nullopt;
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
  const bool wasm = target.architecture == Architecture::wasm32;
  if (wasm || target.architecture == Architecture::x86_64) {
    if (lanes_of(a) == 1) return by_halves(builder, a, b);
    return by_registers(builder, target.vector_lanes(4), a, b, [&](llvm::Value* x, llvm::Value* y) {
      return wasm ? emit_wasm_dot(builder, x, y) : emit_pmaddwd(builder, x, y);
    });
  }
  BC_CHECK(is_arm(target), "{} has pair products of a kind unknown here", target.name);
  return emit_smuad(builder, a, b);
}

llvm::Value* emit_byte_product(Builder& builder, const Types& types, loop::Op op, llvm::Value* a,
                               llvm::Value* b) {
  const TargetInfo& target = types.target();
  const bool direct = target.has_dot4(op == loop::Op::dot4_signed);
  if (!direct || lanes_of(a) == 1) return by_bytes(builder, op, a, b);
  const bool x86 = target.architecture == Architecture::x86_64 && op == loop::Op::dot4;
  BC_CHECK(x86 || target.architecture == Architecture::aarch64,
           "{} has products of bytes of a kind unknown here", target.name);
  return by_registers(builder, target.vector_lanes(4), a, b, [&](llvm::Value* x, llvm::Value* y) {
    llvm::Value* zero = llvm::Constant::getNullValue(x->getType());
    return x86 ? emit_vpdpbusd(builder, zero, x, y) : emit_dot(builder, op, zero, x, y);
  });
}

llvm::Value* emit_summed_byte_product(Builder& builder, llvm::Value* a, llvm::Value* b) {
  llvm::Type* bytes = lanes_of_bits(builder, 8, 16);
  llvm::Value* zero = builder.getInt32(0);
  return builder.CreateIntrinsic(
      llvm::Intrinsic::arm_mve_vmldava, {bytes},
      {zero, zero, zero, zero, builder.CreateBitCast(a, bytes), builder.CreateBitCast(b, bytes)});
}

llvm::Value* emit_product_sum(Builder& builder, llvm::Value* a, llvm::Value* b) {
  for (const auto& [product, other] : {std::pair(b, a), std::pair(a, b)}) {
    const auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(product);
    if (call == nullptr) continue;
    if (call->getIntrinsicID() == llvm::Intrinsic::arm_smuad) {
      return builder.CreateIntrinsic(llvm::Intrinsic::arm_smlad, {},
                                     {call->getArgOperand(0), call->getArgOperand(1), other});
    }
    const std::optional<unsigned> at = sum_operand(call->getIntrinsicID());
    const auto* sum = at ? llvm::dyn_cast<llvm::Constant>(call->getArgOperand(*at)) : nullptr;
    if (sum == nullptr || !sum->isNullValue()) continue;
    std::vector<llvm::Value*> operands(call->arg_begin(), call->arg_end());
    operands[*at] = other;
    return builder.CreateCall(call->getCalledFunction(), operands);
  }
  return nullptr;
}

}  // namespace backcast::llvm_backend
