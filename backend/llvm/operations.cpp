// See operations.h. No fast-math flag is ever set: results are IEEE, bit for bit.
#include "backend/llvm/operations.h"

#include <llvm/IR/Constants.h>
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/IntrinsicsARM.h>
#include <llvm/IR/PatternMatch.h>

#include "backend/llvm/registers.h"
#include "ir/graph/error.h"

namespace backcast::llvm_backend {

using loop::Op;
using loop::Scalar;

bool is_signed(Scalar s) {
  switch (s) {
    case Scalar::i8:
    case Scalar::i16:
    case Scalar::i32:
    case Scalar::i64:
    case Scalar::index:
      return true;
    default:
      return loop::is_float(s);
  }
}

llvm::IntegerType* Types::index() const {
  return llvm::IntegerType::get(context_, static_cast<unsigned>(target_.pointer_bits));
}

llvm::Type* Types::scalar(Scalar s) const {
  switch (s) {
    case Scalar::boolean:
      return llvm::Type::getInt1Ty(context_);
    case Scalar::i8:
    case Scalar::u8:
      return llvm::Type::getInt8Ty(context_);
    case Scalar::i16:
    case Scalar::u16:
    case Scalar::f16:
    case Scalar::bf16:
      return llvm::Type::getInt16Ty(context_);
    case Scalar::i32:
    case Scalar::u32:
      return llvm::Type::getInt32Ty(context_);
    case Scalar::i64:
    case Scalar::u64:
      return llvm::Type::getInt64Ty(context_);
    case Scalar::f32:
      return llvm::Type::getFloatTy(context_);
    case Scalar::f64:
      return llvm::Type::getDoubleTy(context_);
    case Scalar::index:
      return index();
  }
  BC_CHECK(false, "scalar type {}", static_cast<int>(s));
}

llvm::Type* Types::value(loop::Type t) const {
  llvm::Type* element = scalar(t.scalar);
  if (!t.is_vector()) return element;
  return llvm::FixedVectorType::get(element, static_cast<unsigned>(t.lanes));
}

llvm::Type* Types::memory(loop::Type t) const {
  return value({t.scalar == Scalar::boolean ? Scalar::u8 : t.scalar, t.lanes});
}

int64_t Types::memory_bytes(Scalar s) const {
  return s == Scalar::index ? target_.pointer_bits / 8 : byte_size(loop::element_of(s));
}

int32_t lanes_of(const llvm::Value* value) {
  const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(value->getType());
  return vector == nullptr ? 1 : static_cast<int32_t>(vector->getNumElements());
}

llvm::Value* emit_constant(const Types& types, const loop::ExprNode& node) {
  llvm::Type* type = types.value(node.type);
  switch (node.type.scalar) {
    case Scalar::f32:
      return llvm::ConstantFP::get(type, llvm::APFloat(static_cast<float>(node.float_value)));
    case Scalar::f64:
      return llvm::ConstantFP::get(type, llvm::APFloat(node.float_value));
    case Scalar::f16:
      return llvm::ConstantInt::get(type, f16_from_f64(node.float_value));
    case Scalar::bf16:
      return llvm::ConstantInt::get(type, bf16_from_f64(node.float_value));
    case Scalar::boolean:
      return llvm::ConstantInt::get(type, node.int_value != 0 ? 1 : 0);
    default:
      return llvm::ConstantInt::getSigned(type, node.int_value);
  }
}

namespace {

/// Whether the floating-point unit computes on this type: operations without a compiler helper
/// (sqrt, fma, rounding) need it.
bool in_hardware(const TargetInfo& target, Scalar scalar) {
  return scalar == Scalar::f32 ? target.has_f32 : scalar == Scalar::f64 && target.has_f64;
}

llvm::Value* emit_rounding(Builder& builder, const Types& types, Op op, Scalar scalar,
                           llvm::Value* a) {
  const TargetInfo& target = types.target();
  BC_CHECK(in_hardware(target, scalar) && (op == Op::sqrt ? target.has_sqrt : target.has_rounding),
           "{} of {} is not an instruction of {}; legalisation must expand it", name_of(op),
           loop::name_of(scalar), target.name);
  llvm::Intrinsic::ID id = llvm::Intrinsic::sqrt;
  if (op == Op::floor) id = llvm::Intrinsic::floor;
  if (op == Op::ceil) id = llvm::Intrinsic::ceil;
  if (op == Op::trunc) id = llvm::Intrinsic::trunc;
  // Not roundeven: LLVM calls libm for it on some ARM units. In the default mode rint is the same.
  if (op == Op::round_even) id = llvm::Intrinsic::rint;
  return builder.CreateUnaryIntrinsic(id, a);
}

llvm::Constant* splat(llvm::Value* like, int64_t value) {
  return llvm::ConstantInt::getSigned(like->getType(), value);
}

/// Signed division by -1 wraps; LLVM leaves the overflow undefined (x86 traps).
llvm::Value* emit_signed_division(Builder& builder, Op op, llvm::Value* a, llvm::Value* b) {
  const bool is_division = op == Op::div;
  if (llvm::isa<llvm::Constant>(b)) {
    if (b == splat(b, -1)) return is_division ? builder.CreateNeg(a) : splat(a, 0);
    if (llvm::isa<llvm::ConstantInt>(b)) {
      return is_division ? builder.CreateSDiv(a, b) : builder.CreateSRem(a, b);
    }
  }
  llvm::Value* minus_one = builder.CreateICmpEQ(b, splat(b, -1));
  llvm::Value* divisor = builder.CreateSelect(minus_one, splat(b, 1), b);
  if (!is_division) return builder.CreateSRem(a, divisor);
  llvm::Value* quotient = builder.CreateSDiv(a, divisor);
  return builder.CreateSelect(minus_one, builder.CreateNeg(a), quotient);
}

/// Rounds towards minus infinity; the divisor is positive.
llvm::Value* emit_floor_division(Builder& builder, Op op, Scalar scalar, llvm::Value* a,
                                 llvm::Value* b) {
  const bool is_division = op == Op::floor_div;
  if (!is_signed(scalar)) return is_division ? builder.CreateUDiv(a, b) : builder.CreateURem(a, b);
  if (const auto* divisor = llvm::dyn_cast<llvm::ConstantInt>(b)) {
    const llvm::APInt& value = divisor->getValue();
    if (value.isPowerOf2()) {
      if (is_division) return builder.CreateAShr(a, static_cast<uint64_t>(value.logBase2()));
      return builder.CreateAnd(a, llvm::ConstantInt::get(a->getType(), value - 1));
    }
  }
  llvm::Value* remainder = builder.CreateSRem(a, b);
  llvm::Value* negative = builder.CreateICmpSLT(remainder, splat(a, 0));
  if (!is_division) {
    return builder.CreateAdd(remainder, builder.CreateSelect(negative, b, splat(b, 0)));
  }
  llvm::Value* quotient = builder.CreateSDiv(a, b);
  return builder.CreateAdd(quotient, builder.CreateSExt(negative, a->getType()));
}

llvm::Value* emit_mul_high(Builder& builder, Scalar scalar, llvm::Value* a, llvm::Value* b) {
  llvm::Type* narrow = a->getType();
  const unsigned bits = narrow->getScalarSizeInBits();
  llvm::Type* wide = narrow->getWithNewBitWidth(2 * bits);
  const bool sign = is_signed(scalar);
  llvm::Value* wide_a = sign ? builder.CreateSExt(a, wide) : builder.CreateZExt(a, wide);
  llvm::Value* wide_b = sign ? builder.CreateSExt(b, wide) : builder.CreateZExt(b, wide);
  llvm::Value* product = builder.CreateMul(wide_a, wide_b);
  return builder.CreateTrunc(builder.CreateLShr(product, static_cast<uint64_t>(bits)), narrow);
}

/// x of a comparison 0 < |x|; null for all others.
llvm::Value* magnitude_above_zero(llvm::Value* less, llvm::Value* greater) {
  namespace pattern = llvm::PatternMatch;
  llvm::Value* x = nullptr;
  const bool found = pattern::match(less, pattern::m_AnyZeroFP()) &&
                     pattern::match(greater, pattern::m_FAbs(pattern::m_Value(x)));
  return found ? x : nullptr;
}

/// a < b. 0 < |x| compares x itself: of |x| > 0, beside a test for NaN, InstCombine of LLVM 19
/// makes x > 0.
llvm::Value* emit_less(Builder& builder, llvm::Value* a, llvm::Value* b) {
  if (llvm::Value* x = magnitude_above_zero(a, b)) return builder.CreateFCmpONE(x, a);
  return builder.CreateFCmpOLT(a, b);
}

llvm::Value* emit_greater(Builder& builder, llvm::Value* a, llvm::Value* b) {
  if (llvm::Value* x = magnitude_above_zero(b, a)) return builder.CreateFCmpONE(x, b);
  return builder.CreateFCmpOGT(a, b);
}

llvm::Value* emit_float_binary(Builder& builder, Op op, llvm::Value* a, llvm::Value* b) {
  switch (op) {
    case Op::add:
      return builder.CreateFAdd(a, b);
    case Op::sub:
      return builder.CreateFSub(a, b);
    case Op::mul:
      return builder.CreateFMul(a, b);
    case Op::div:
      return builder.CreateFDiv(a, b);
    case Op::min:
      return builder.CreateSelect(emit_less(builder, a, b), a, b);
    case Op::max:
      return builder.CreateSelect(emit_greater(builder, a, b), a, b);
    case Op::eq:
      return builder.CreateFCmpOEQ(a, b);
    case Op::ne:
      return builder.CreateFCmpUNE(a, b);
    case Op::lt:
      return emit_less(builder, a, b);
    case Op::le:
      return builder.CreateFCmpOLE(a, b);
    case Op::gt:
      return emit_greater(builder, a, b);
    case Op::ge:
      return builder.CreateFCmpOGE(a, b);
    default:
      break;
  }
  BC_CHECK(false, "operation {} on floating-point values", name_of(op));
}

llvm::CmpInst::Predicate integer_predicate(Op op, bool sign) {
  switch (op) {
    case Op::eq:
      return llvm::CmpInst::ICMP_EQ;
    case Op::ne:
      return llvm::CmpInst::ICMP_NE;
    case Op::lt:
      return sign ? llvm::CmpInst::ICMP_SLT : llvm::CmpInst::ICMP_ULT;
    case Op::le:
      return sign ? llvm::CmpInst::ICMP_SLE : llvm::CmpInst::ICMP_ULE;
    case Op::gt:
      return sign ? llvm::CmpInst::ICMP_SGT : llvm::CmpInst::ICMP_UGT;
    default:
      return sign ? llvm::CmpInst::ICMP_SGE : llvm::CmpInst::ICMP_UGE;
  }
}

/// vcvtr of Arm and cvtps2dq of x86, which round as the mode says: to nearest; vcvtn of MVE.
llvm::Value* emit_nearest(Builder& builder, const Types& types, llvm::Value* a) {
  const TargetInfo& target = types.target();
  BC_CHECK(target.converts_to_nearest, "nearest on {} must have been legalised", target.name);
  const int32_t lanes = lanes_of(a);
  llvm::Type* integer = types.value({Scalar::i32, lanes});
  if (target.architecture == Architecture::x86_64) {
    return builder.CreateIntrinsic(llvm::Intrinsic::lrint, {integer, a->getType()}, {a});
  }
  if (lanes == target.vector_lanes(4) && lanes > 1) {
    return builder.CreateIntrinsic(llvm::Intrinsic::arm_mve_vcvtn, {integer, a->getType()},
                                   {builder.getInt32(0), a});
  }
  const auto nearest = [&](llvm::Value* x) {
    llvm::Value* bits = builder.CreateIntrinsic(llvm::Intrinsic::arm_vcvtr, {x->getType()}, {x});
    return builder.CreateBitCast(bits, builder.getInt32Ty());
  };
  if (lanes == 1) return nearest(a);
  llvm::Value* result = llvm::PoisonValue::get(integer);
  for (int32_t lane = 0; lane < lanes; ++lane) {
    const auto at = static_cast<uint64_t>(lane);
    result = builder.CreateInsertElement(result, nearest(builder.CreateExtractElement(a, at)), at);
  }
  return result;
}

/// Where LLVM would take lane after lane into a general register, each gives its bit to one of four
/// words, which are added.
llvm::Value* emit_lane_bits(Builder& builder, const Types& types, llvm::Value* a) {
  constexpr int32_t kRegister = 4, kWord = 32;
  const int32_t lanes = lanes_of(a);
  llvm::Type* result = types.value({loop::lane_bits_scalar(lanes), 1});
  const bool by_words = types.target().architecture == Architecture::arm && lanes <= kWord;
  if (!by_words || lanes % kRegister != 0) {
    const auto bits = static_cast<unsigned>(lanes);
    return builder.CreateZExt(builder.CreateBitCast(a, builder.getIntNTy(bits)), result);
  }
  llvm::Value* words = nullptr;
  for (int32_t first = 0; first < lanes; first += kRegister) {
    llvm::Value* set = builder.CreateSExt(
        part(builder, a, first, kRegister),
        llvm::FixedVectorType::get(builder.getInt32Ty(), static_cast<unsigned>(kRegister)));
    std::vector<uint32_t> bits;
    for (int32_t lane = 0; lane < kRegister; ++lane) bits.push_back(1U << (first + lane));
    set = builder.CreateAnd(set, llvm::ConstantDataVector::get(builder.getContext(), bits));
    words = words == nullptr ? set : builder.CreateOr(words, set);
  }
  return builder.CreateZExtOrTrunc(builder.CreateAddReduce(words), result);
}

}  // namespace

llvm::Value* emit_unary(Builder& builder, const Types& types, Op op, Scalar scalar,
                        llvm::Value* a) {
  const bool is_float = loop::is_float(scalar);
  switch (op) {
    case Op::neg:
      return is_float ? builder.CreateFNeg(a) : builder.CreateNeg(a);
    case Op::abs:
      if (is_float) return builder.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, a);
      if (!is_signed(scalar)) return a;
      return builder.CreateBinaryIntrinsic(llvm::Intrinsic::abs, a, builder.getFalse());
    case Op::bit_not:
      return builder.CreateNot(a);
    case Op::is_nan:
      return builder.CreateFCmpUNO(a, a);
    case Op::nearest:
      return emit_nearest(builder, types, a);
    case Op::even_bytes:
    case Op::odd_bytes:
      return emit_byte_pair(builder, types, op, a);
    case Op::lane_bits:
      return emit_lane_bits(builder, types, a);
    case Op::trailing_zeros:
      return builder.CreateBinaryIntrinsic(llvm::Intrinsic::cttz, a, builder.getTrue());
    case Op::sqrt:
    case Op::floor:
    case Op::ceil:
    case Op::trunc:
    case Op::round_even:
      return emit_rounding(builder, types, op, scalar, a);
    default:
      break;
  }
  BC_CHECK(false, "{} is not a unary operation", name_of(op));
}

llvm::Value* emit_binary(Builder& builder, const Types& types, Op op, Scalar scalar, llvm::Value* a,
                         llvm::Value* b) {
  BC_CHECK(scalar != Scalar::f16 && scalar != Scalar::bf16,
           "arithmetic on {} must have been legalised", loop::name_of(scalar));
  if (loop::is_float(scalar)) return emit_float_binary(builder, op, a, b);
  const bool sign = is_signed(scalar);
  if (loop::is_comparison(op)) return builder.CreateICmp(integer_predicate(op, sign), a, b);
  switch (op) {
    case Op::add:
      if (llvm::Value* sum = emit_product_sum(builder, a, b)) return sum;
      return builder.CreateAdd(a, b);
    case Op::sub:
      return builder.CreateSub(a, b);
    case Op::mul:
      return builder.CreateMul(a, b);
    case Op::div:
      return sign ? emit_signed_division(builder, op, a, b) : builder.CreateUDiv(a, b);
    case Op::rem:
      return sign ? emit_signed_division(builder, op, a, b) : builder.CreateURem(a, b);
    case Op::floor_div:
    case Op::floor_mod:
      return emit_floor_division(builder, op, scalar, a, b);
    case Op::min:
      return builder.CreateBinaryIntrinsic(sign ? llvm::Intrinsic::smin : llvm::Intrinsic::umin, a,
                                           b);
    case Op::max:
      return builder.CreateBinaryIntrinsic(sign ? llvm::Intrinsic::smax : llvm::Intrinsic::umax, a,
                                           b);
    case Op::bit_and:
      return builder.CreateAnd(a, b);
    case Op::bit_or:
      return builder.CreateOr(a, b);
    case Op::bit_xor:
      return builder.CreateXor(a, b);
    case Op::shl:
      return builder.CreateShl(a, b);
    case Op::shr:
      return sign ? builder.CreateAShr(a, b) : builder.CreateLShr(a, b);
    case Op::mul_high:
      return emit_mul_high(builder, scalar, a, b);
    case Op::dot2:
      return emit_pair_product(builder, types, a, b);
    case Op::dot4:
    case Op::dot4_signed:
      return emit_byte_product(builder, types, op, a, b);
    default:
      break;
  }
  BC_CHECK(false, "operation {} on integers", name_of(op));
}

llvm::Value* emit_fma(Builder& builder, const Types& types, Scalar scalar, llvm::Value* a,
                      llvm::Value* b, llvm::Value* c) {
  const TargetInfo& target = types.target();
  BC_CHECK(target.has_fma && in_hardware(target, scalar),
           "{} has no fused multiply-add on {}; schedules must not use it", target.name,
           loop::name_of(scalar));
  return builder.CreateIntrinsic(llvm::Intrinsic::fma, {a->getType()}, {a, b, c});
}

llvm::Value* emit_cast(Builder& builder, const Types& types, loop::Type from, loop::Type to,
                       llvm::Value* a) {
  if (from == to) return a;
  llvm::Type* type = types.value(to);
  if (loop::is_half(from.scalar) || loop::is_half(to.scalar)) {
    const Scalar other = from.scalar == Scalar::f16 ? to.scalar : from.scalar;
    BC_CHECK(types.target().converts_halves && other == Scalar::f32,
             "a cast from {} to {} must have been legalised", from.to_string(), to.to_string());
    llvm::Type* half = type->getWithNewType(builder.getHalfTy());
    return from.scalar == Scalar::f16 ? builder.CreateFPExt(builder.CreateBitCast(a, half), type)
                                      : builder.CreateBitCast(builder.CreateFPTrunc(a, half), type);
  }
  const bool from_float = loop::is_float(from.scalar);
  const bool to_float = loop::is_float(to.scalar);
  if (to.scalar == Scalar::boolean) {
    llvm::Constant* zero = llvm::Constant::getNullValue(a->getType());
    return from_float ? builder.CreateFCmpUNE(a, zero) : builder.CreateICmpNE(a, zero);
  }
  if (from_float && to_float) return builder.CreateFPCast(a, type);
  if (from_float) {
    return is_signed(to.scalar) ? builder.CreateFPToSI(a, type) : builder.CreateFPToUI(a, type);
  }
  const bool sign = is_signed(from.scalar);
  if (to_float) return sign ? builder.CreateSIToFP(a, type) : builder.CreateUIToFP(a, type);
  return builder.CreateIntCast(a, type, sign);
}

llvm::Value* emit_shuffle(Builder& builder, const std::vector<llvm::Value*>& args,
                          const std::vector<int32_t>& indices) {
  const bool to_scalar = indices.size() == 1;
  const int32_t first_lanes = lanes_of(args[0]);
  bool uniform = first_lanes > 1 && args.size() <= 2;
  for (const llvm::Value* arg : args) uniform = uniform && lanes_of(arg) == first_lanes;
  if (uniform && !to_scalar) {
    llvm::Value* second = args.size() == 2 ? args[1] : llvm::PoisonValue::get(args[0]->getType());
    return builder.CreateShuffleVector(args[0], second, llvm::ArrayRef<int>(indices));
  }
  // The general case lane by lane; InstCombine makes shuffles of it again.
  std::vector<std::pair<llvm::Value*, int32_t>> lanes;
  for (llvm::Value* arg : args) {
    for (int32_t lane = 0; lane < lanes_of(arg); ++lane) lanes.emplace_back(arg, lane);
  }
  llvm::Value* result = nullptr;
  for (size_t i = 0; i < indices.size(); ++i) {
    const auto& [arg, lane] = lanes.at(static_cast<size_t>(indices[i]));
    llvm::Value* element =
        lanes_of(arg) == 1 ? arg : builder.CreateExtractElement(arg, static_cast<uint64_t>(lane));
    if (to_scalar) return element;
    if (result == nullptr) {
      result = llvm::PoisonValue::get(
          llvm::FixedVectorType::get(element->getType(), static_cast<unsigned>(indices.size())));
    }
    result = builder.CreateInsertElement(result, element, static_cast<uint64_t>(i));
  }
  return result;
}

llvm::Value* emit_reduce_lanes(Builder& builder, const Types& types, Op op, Scalar scalar,
                               llvm::Value* a) {
  for (int32_t lanes = lanes_of(a); lanes > 1; lanes /= 2) {
    BC_CHECK(lanes % 2 == 0, "reduce_lanes over a number of lanes that is no power of two");
    std::vector<int32_t> low, high;
    for (int32_t i = 0; i < lanes / 2; ++i) {
      low.push_back(i);
      high.push_back(lanes / 2 + i);
    }
    llvm::Value* low_half = emit_shuffle(builder, {a}, low);
    a = emit_binary(builder, types, op, scalar, low_half, emit_shuffle(builder, {a}, high));
  }
  return a;
}

llvm::Value* to_memory(Builder& builder, const Types& types, loop::Type type, llvm::Value* value) {
  return type.scalar == Scalar::boolean ? builder.CreateZExt(value, types.memory(type)) : value;
}

llvm::Value* from_memory(Builder& builder, loop::Type type, llvm::Value* value) {
  if (type.scalar != Scalar::boolean) return value;
  return builder.CreateICmpNE(value, llvm::Constant::getNullValue(value->getType()));
}

}  // namespace backcast::llvm_backend
