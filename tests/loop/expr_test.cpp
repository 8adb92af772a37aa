// Light folding in the constructors of expressions.
#include <gtest/gtest.h>

#include <cmath>

#include "ir/graph/error.h"
#include "ir/loop/text.h"

namespace backcast::loop {
namespace {

const Expr i = var("i");
const Expr x = var("x", {Scalar::f32});

TEST(Expr, FoldsIndexArithmetic) {
  EXPECT_EQ(print(i + Expr(0)), "i");
  EXPECT_EQ(print(Expr(0) + i), "i");
  EXPECT_EQ(print(i * Expr(1)), "i");
  EXPECT_EQ(print(Expr(3) * i), "i*3");
  EXPECT_TRUE(is_constant(i * Expr(0), 0));
  EXPECT_EQ(print((i + Expr(3)) + Expr(4)), "i + 7");
  EXPECT_EQ(print((i * Expr(3)) * Expr(4)), "i*12");
  EXPECT_TRUE(is_constant(floor_div(Expr(-7), Expr(2)), -4));
  EXPECT_TRUE(is_constant(floor_mod(Expr(-7), Expr(2)), 1));
  EXPECT_TRUE(is_constant(Expr(3) < Expr(4), 1));
}

TEST(Expr, WrapsIntegers) {
  const Type i8 = {Scalar::i8};
  EXPECT_TRUE(is_constant(int_constant(i8, 100) + int_constant(i8, 100), -56));
  EXPECT_TRUE(is_constant(int_constant({Scalar::u8}, 300), 44));
  const Type u64 = {Scalar::u64};
  EXPECT_TRUE(is_constant(int_constant(u64, 1) < int_constant(u64, -1), 1));
  const Expr lowest = int_constant({Scalar::i32}, INT32_MIN);
  EXPECT_TRUE(is_constant(binary(Op::div, lowest, int_constant({Scalar::i32}, -1)), INT32_MIN));
  EXPECT_TRUE(is_constant(binary(Op::mul_high, lowest, lowest), 1 << 30));
  const Expr lowest_pair = int_constant({Scalar::i32}, static_cast<int32_t>(0x80008000));
  EXPECT_TRUE(is_constant(binary(Op::dot2, lowest_pair, lowest_pair), INT32_MIN));
}

TEST(Expr, FoldsByteProducts) {
  const Type words = {Scalar::i32, 4};
  // 1, 255, 3, 0 times 2, -1, -128, 77: the bytes of the first are unsigned.
  const Expr a = int_constant(words, 0x0003ff01), b = int_constant(words, 0x4d80ff02);
  EXPECT_TRUE(is_constant(binary(Op::dot4, a, b), 2 - 255 - 3 * 128));
  EXPECT_TRUE(is_constant(binary(Op::dot4, b, a), 2 - 255 + 3 * 128));
  EXPECT_TRUE(is_constant(binary(Op::dot4_signed, a, b), 2 + 1 - 3 * 128));
  const Expr v = var("v", words), zero = int_constant(words, 0);
  EXPECT_TRUE(is_constant(binary(Op::dot4, v, zero), 0));
  EXPECT_TRUE(is_constant(binary(Op::dot4, zero, v), 0));
  EXPECT_TRUE(is_constant(binary(Op::dot4_signed, zero, v), 0));
  EXPECT_FALSE(binary(Op::dot4, v, int_constant(words, 1))->kind == ExprKind::var);
  for (const Scalar scalar : {Scalar::f32, Scalar::u32, Scalar::u8, Scalar::boolean}) {
    EXPECT_THROW(binary(Op::dot4, var("a", {scalar}), var("b", {scalar})), InternalError);
  }
}

TEST(Expr, FoldsPairProducts) {
  const Type words = {Scalar::i32, 4};
  const Expr pair = int_constant(words, (-3 << 16) | 2);
  EXPECT_TRUE(is_constant(binary(Op::dot2, pair, int_constant(words, (7 << 16) | 5)), -11));
  const Expr v = var("v", words);
  EXPECT_TRUE(is_constant(binary(Op::dot2, v, int_constant(words, 0)), 0));
  EXPECT_TRUE(is_constant(binary(Op::dot2, int_constant(words, 0), v), 0));
  EXPECT_EQ(print(binary(Op::dot2, v, int_constant({Scalar::i32}, 1))), "dot2(v, 1:i32x4)");
  for (const Scalar scalar : {Scalar::f32, Scalar::u32, Scalar::i16, Scalar::boolean}) {
    EXPECT_THROW(binary(Op::dot2, var("a", {scalar}), var("b", {scalar})), InternalError);
  }
}

TEST(Expr, TypesOfLaneBits) {
  for (const auto& [lanes, scalar] : std::vector<std::pair<int32_t, Scalar>>{{2, Scalar::u8},
                                                                             {8, Scalar::u8},
                                                                             {16, Scalar::u16},
                                                                             {32, Scalar::u32},
                                                                             {64, Scalar::u64}}) {
    EXPECT_EQ(unary(Op::lane_bits, var("v", {Scalar::boolean, lanes})).type(), (Type{scalar, 1}));
  }
  for (const Type type :
       {Type{Scalar::boolean, 1}, Type{Scalar::boolean, 128}, Type{Scalar::u8, 8}}) {
    EXPECT_THROW(unary(Op::lane_bits, var("v", type)), InternalError);
  }
  EXPECT_EQ(unary(Op::nearest, var("v", {Scalar::f32, 4})).type(), (Type{Scalar::i32, 4}));
  for (const Scalar scalar : {Scalar::f64, Scalar::i32}) {
    EXPECT_THROW(unary(Op::nearest, var("v", {scalar})), InternalError);
  }
  EXPECT_EQ(unary(Op::trailing_zeros, var("v", {Scalar::u64})).type(), Type{Scalar::u64});
  for (const Scalar scalar : {Scalar::u16, Scalar::i32, Scalar::index, Scalar::f32}) {
    EXPECT_THROW(unary(Op::trailing_zeros, var("v", {scalar})), InternalError);
  }
}

TEST(Expr, FoldsBytePairs) {
  const Type words = {Scalar::i32, 4};
  const Expr bytes = int_constant(words, static_cast<int32_t>(0xfe7f8003));
  EXPECT_TRUE(is_constant(unary(Op::even_bytes, bytes), 0x007f0003));
  EXPECT_TRUE(is_constant(unary(Op::odd_bytes, bytes), static_cast<int32_t>(0xfffeff80)));
  const Expr v = var("v", words);
  EXPECT_EQ(unary(Op::odd_bytes, v).type(), words);
  EXPECT_EQ(print(unary(Op::even_bytes, v)), "even_bytes(v)");
  for (const Scalar scalar : {Scalar::f32, Scalar::u32, Scalar::i16, Scalar::boolean}) {
    EXPECT_THROW(unary(Op::even_bytes, var("a", {scalar})), InternalError);
    EXPECT_THROW(unary(Op::odd_bytes, var("a", {scalar})), InternalError);
  }
}

TEST(Expr, LeavesFloatsAlone) {
  const Expr zero = constant({Scalar::f32}, 0);
  EXPECT_EQ(print(x + zero), "x + 0:f32");
  EXPECT_EQ(print(x * zero), "x*0:f32");
  EXPECT_EQ(print(zero + zero), "0:f32 + 0:f32");
}

TEST(Expr, RoundsConstantsToTheirType) {
  EXPECT_EQ(constant({Scalar::f32}, 0.1)->float_value, static_cast<double>(0.1f));
  EXPECT_EQ(constant({Scalar::f16}, 1e6)->float_value, HUGE_VAL);
}

TEST(Expr, HalvesThatWereWidenedAreAsTheyWere) {
  const Expr half = loop::load({Scalar::f16, 4}, "h", loop::index_constant(0));
  const Expr wide = loop::cast({Scalar::f32, 4}, half);
  EXPECT_TRUE(loop::equal(loop::cast({Scalar::f16, 4}, wide), half));
  EXPECT_FALSE(loop::equal(loop::cast({Scalar::bf16, 4}, wide), half));
  EXPECT_FALSE(loop::equal(loop::cast({Scalar::f16, 4}, wide + wide), half));
}

TEST(Expr, BroadcastsScalarOperands) {
  const Expr v = var("v", {Scalar::f32, 8});
  EXPECT_EQ(print(v + x), "v + broadcast(x, 8)");
  EXPECT_EQ(print(v * constant({Scalar::f32}, 2)), "v*2:f32x8");
  const Expr halves = var("h", {Scalar::i16, 2});
  EXPECT_EQ(bitcast({Scalar::i32}, halves).type(), Type{Scalar::i32});
  EXPECT_EQ(bitcast({Scalar::i32}, broadcast(x, 4)).type(), (Type{Scalar::i32, 4}));
  EXPECT_EQ(print(select(var("c", {Scalar::boolean}), v, v)), "select(broadcast(c, 8), v, v)");
}

TEST(Expr, DecidesConditions) {
  const Expr yes = int_constant({Scalar::boolean}, 1);
  const Expr b = var("b", {Scalar::boolean});
  EXPECT_EQ(print(if_then_else(yes, i, Expr(2))), "i");
  EXPECT_EQ(print(b && yes), "b");
  EXPECT_TRUE(is_constant(b && int_constant({Scalar::boolean}, 0), 0));
}

TEST(Expr, RefusesMixedTypes) {
  EXPECT_THROW(i + x, InternalError);
  EXPECT_THROW(unary(Op::sqrt, i), InternalError);
  EXPECT_THROW(load({Scalar::f32}, "b", x), InternalError);
  EXPECT_THROW(floor_div(x, x), InternalError);
}

TEST(Expr, ComparesByStructure) {
  EXPECT_TRUE(equal(x + x, var("x", {Scalar::f32}) + var("x", {Scalar::f32})));
  EXPECT_FALSE(equal(x, var("x", {Scalar::f64})));
  EXPECT_FALSE(equal(constant({Scalar::f32}, 0.0), constant({Scalar::f32}, -0.0)));
}

}  // namespace
}  // namespace backcast::loop
