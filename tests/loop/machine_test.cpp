// Single operations of the interpreter, written as one-line kernels.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "ir/graph/error.h"
#include "tests/loop/kernels.h"

namespace backcast::loop {
namespace {

/// y[0] = the expression of a and b, of C++ types A (operands) and R (result).
template <class R, class A>
R evaluate(const std::string& operand, const std::string& result, const std::string& expression,
           A a, A b) {
  std::vector<A> x = {a, b};
  std::vector<R> y(1);
  run_text("kernel @k(x: " + operand + "[2] read, y: " + result + "[1] write) { let a = load " +
               operand + " x[0] let b = load " + operand + " x[1] store y[0] = " + expression +
               " }",
           {bytes_of(x), bytes_of(y)});
  return y[0];
}

float f32(const std::string& e, float a, float b = 0) {
  return evaluate<float, float>("f32", "f32", e, a, b);
}
int32_t i32(const std::string& e, int32_t a, int32_t b = 0) {
  return evaluate<int32_t, int32_t>("i32", "i32", e, a, b);
}

TEST(Machine, FloatArithmeticIsSinglePrecision) {
  EXPECT_EQ(f32("a + b", 1e8f, 1.0f), 1e8f + 1.0f);
  EXPECT_EQ(f32("a*b + 1:f32", 1.0f / 3, 3.0f), static_cast<float>((1.0f / 3) * 3.0f) + 1.0f);
  EXPECT_EQ(f32("fma(a, b, -1:f32)", 1.0f / 3, 3.0f), std::fma(1.0f / 3, 3.0f, -1.0f));
  EXPECT_EQ(f32("sqrt(a)", 2.0f), std::sqrt(2.0f));
  EXPECT_EQ(f32("round_even(a)", 2.5f), 2.0f);
  EXPECT_EQ(f32("-a", 0.0f), -0.0f);
  EXPECT_TRUE(std::signbit(f32("-a", 0.0f)));
}

TEST(Machine, MinAndMaxGiveTheSecondForNan) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(f32("min(a, b)", nan, 1), 1);
  EXPECT_EQ(f32("max(a, b)", nan, 1), 1);
  EXPECT_TRUE(std::isnan(f32("min(a, b)", 1, nan)));
  EXPECT_TRUE(std::isnan(f32("max(a, b)", 1, nan)));
}

TEST(Machine, IntegersWrapAndTruncate) {
  EXPECT_EQ(i32("a + b", INT32_MAX, 1), INT32_MIN);
  EXPECT_EQ(i32("a*b", 1 << 20, 1 << 20), 0);
  EXPECT_EQ(i32("a/b", -7, 2), -3);
  EXPECT_EQ(i32("a%b", -7, 2), -1);
  EXPECT_EQ(i32("floor_div(a, b)", -7, 2), -4);
  EXPECT_EQ(i32("floor_mod(a, b)", -7, 2), 1);
  EXPECT_EQ(i32("a/b", 5, 0), 0);
  EXPECT_EQ(i32("a%b", 5, 0), 5);
  EXPECT_EQ(i32("a/b", INT32_MIN, -1), INT32_MIN);
  EXPECT_EQ(i32("a >> b", -8, 1), -4);
  EXPECT_EQ(i32("mul_high(a, b)", INT32_MIN, INT32_MIN), 1 << 30);
  EXPECT_EQ((evaluate<uint8_t, uint8_t>("u8", "u8", "a - b", 1, 2)), 255);
  EXPECT_EQ((evaluate<uint32_t, uint32_t>("u32", "u32", "a >> b", 0x80000000u, 4)), 0x08000000u);
  EXPECT_EQ((evaluate<uint64_t, uint64_t>("u64", "u64", "mul_high(a, b)", ~0ull, ~0ull)),
            ~0ull - 1);
}

int32_t pair(int low, int high) {
  return static_cast<int32_t>(static_cast<uint32_t>(high) << 16 |
                              (static_cast<uint32_t>(low) & 0xffff));
}

TEST(Machine, PairProductsAreOfHalves) {
  EXPECT_EQ(i32("dot2(a, b)", pair(2, -3), pair(5, 7)), 10 - 21);
  EXPECT_EQ(i32("dot2(a, b)", pair(-1, 0), pair(9, 32767)), -9);
  EXPECT_EQ(i32("dot2(a, b)", pair(32767, 32767), pair(32767, 32767)), 2 * 32767 * 32767);
  EXPECT_EQ(i32("dot2(a, b)", pair(-32768, 32767), pair(32767, -32768)), -2 * 32767 * 32768);
  EXPECT_EQ(i32("dot2(a, b)", pair(-32768, -32768), pair(-32768, -32768)), INT32_MIN);
  EXPECT_EQ(i32("dot2(a, b) + a", pair(-32768, -32768), pair(-32768, -32768)), 0x8000);
  std::vector<int16_t> x = {1, 2, 3, 4, -5, 6};
  std::vector<int32_t> y(3);
  run_text(
      "kernel @k(x: i16[6] read, y: i32[3] write) { let a = bitcast i32x3 (load i16x6 x[0])"
      " store y[0] = dot2(a, a) }",
      {bytes_of(x), bytes_of(y)});
  EXPECT_EQ(y, (std::vector<int32_t>{5, 25, 61}));
}

TEST(Machine, ByteProductsAreOfFour) {
  EXPECT_EQ(i32("dot4(a, b)", 0x04030201, 0x01010101), 10);
  EXPECT_EQ(i32("dot4(a, b)", -1, 0x7f7f7f7f), 4 * 255 * 127);
  EXPECT_EQ(i32("dot4(a, b)", -1, static_cast<int32_t>(0x80808080)), -4 * 255 * 128);
  EXPECT_EQ(i32("dot4(b, a)", -1, 0x7f7f7f7f), -4 * 127);
  EXPECT_EQ(i32("a + dot4(a, b)", 0x000000ff, 0x000000fe), 255 - 2 * 255);
  EXPECT_EQ(i32("dot4_signed(a, b)", -1, static_cast<int32_t>(0x80808080)), 4 * 128);
  EXPECT_EQ(i32("dot4_signed(a, a)", static_cast<int32_t>(0x8000ff02), 0), 4 + 1 + 128 * 128);
}

TEST(Machine, BytePairsAreSignExtended) {
  const auto bytes = [](int b0, int b1, int b2, int b3) {
    return pair((b0 & 0xff) | b1 * 256, (b2 & 0xff) | b3 * 256);
  };
  EXPECT_EQ(i32("even_bytes(a)", bytes(1, 2, 3, 4), 0), pair(1, 3));
  EXPECT_EQ(i32("odd_bytes(a)", bytes(1, 2, 3, 4), 0), pair(2, 4));
  EXPECT_EQ(i32("even_bytes(a)", bytes(-128, 127, -1, 0), 0), pair(-128, -1));
  EXPECT_EQ(i32("odd_bytes(a)", bytes(-128, 127, -1, 0), 0), pair(127, 0));
  EXPECT_EQ(i32("even_bytes(a)", bytes(0, -1, 127, -128), 0), pair(0, 127));
  EXPECT_EQ(i32("odd_bytes(a)", bytes(0, -1, 127, -128), 0), pair(-1, -128));
  std::vector<int32_t> x = {bytes(1, -2, 3, -4), bytes(-5, 6, -7, 8)}, y(2);
  run_text(
      "kernel @k(x: i32[2] read, y: i32[2] write) { let a = load i32x2 x[0]"
      " store y[0] = even_bytes(a) + odd_bytes(a) }",
      {bytes_of(x), bytes_of(y)});
  EXPECT_EQ(y, (std::vector<int32_t>{pair(1, 3) + pair(-2, -4), pair(-5, -7) + pair(6, 8)}));
}

TEST(Machine, Nearest) {
  for (const auto& [x, nearest] : {std::pair{2.5f, 2},
                                   {3.5f, 4},
                                   {-0.5f, 0},
                                   {-1.75f, -2},
                                   {4194303.5f, 4194304},
                                   {-4194304.0f, -4194304}}) {
    EXPECT_EQ((evaluate<int32_t, float>("f32", "i32", "nearest(a)", x, 0)), nearest) << x;
  }
}

TEST(Machine, LaneBits) {
  std::vector<float> x(32);
  for (size_t i = 0; i < x.size(); ++i) x[i] = i % 3 == 0 ? 1.0f : i % 3 == 1 ? -0.0f : 0.0f;
  x[31] = std::numeric_limits<float>::quiet_NaN();
  std::vector<uint8_t> few(1);
  std::vector<uint32_t> all(1);
  run_text(
      "kernel @k(x: f32[32] read, few: u8[1] write, all: u32[1] write) {"
      " store few[0] = lane_bits(load f32x4 x[0] != 0:f32x4)"
      " store all[0] = lane_bits(load f32x32 x[0] != 0:f32x32) }",
      {bytes_of(x), bytes_of(few), bytes_of(all)});
  EXPECT_EQ(few[0], 0b1001);
  EXPECT_EQ(all[0], 0xc9249249u);
}

TEST(Machine, TrailingZeros) {
  EXPECT_EQ((evaluate<uint32_t, uint32_t>("u32", "u32", "trailing_zeros(a)", 0x50u, 0)), 4u);
  EXPECT_EQ((evaluate<uint64_t, uint64_t>("u64", "u64", "trailing_zeros(a)", 1ull << 63, 0)), 63u);
}

TEST(Machine, Casts) {
  EXPECT_EQ((evaluate<int32_t, float>("f32", "i32", "cast i32 (a)", -2.7f, 0)), -2);
  EXPECT_EQ((evaluate<float, int64_t>("i64", "f32", "cast f32 (a)", (1 << 24) + 1, 0)),
            16777216.0f);
  EXPECT_EQ((evaluate<int8_t, int32_t>("i32", "i8", "cast i8 (a)", 200, 0)), -56);
  EXPECT_EQ((evaluate<uint16_t, float>("f32", "f16", "cast f16 (a)", 1.5f, 0)), 0x3e00);
  EXPECT_EQ((evaluate<float, uint16_t>("bf16", "f32", "cast f32 (a)", 0x3fc0, 0)), 1.5f);
  EXPECT_EQ((evaluate<uint8_t, float>("f32", "bool", "cast bool (a)", 0.5f, 0)), 1);
  EXPECT_EQ((evaluate<uint32_t, float>("f32", "u32", "bitcast u32 (a)", 1.0f, 0)), 0x3f800000u);
}

TEST(Machine, VectorsAndShuffles) {
  std::vector<float> x = random_floats(16, 1);
  std::vector<float> y(8, 0);
  std::vector<float> r(1, 0);
  run_text(
      "kernel @k(x: f32[16] read, y: f32[8] write, r: f32[1] write) {\n"
      "  let even = load f32x4 x[ramp(0, 2, 4)]\n"
      "  let low = load f32x4 x[4]\n"
      "  let both = shuffle(even, low; 0, 4, 1, 5, 2, 6, 3, 7)\n"
      "  store y[0] = both*broadcast(load f32 x[15], 8)\n"
      "  store r[0] = reduce_lanes(add, low)\n"
      "}",
      {bytes_of(x), bytes_of(y), bytes_of(r)});
  for (size_t lane = 0; lane < 4; ++lane) {
    EXPECT_EQ(y[2 * lane], x[2 * lane] * x[15]);
    EXPECT_EQ(y[2 * lane + 1], x[4 + lane] * x[15]);
  }
  EXPECT_EQ(r[0], (x[4] + x[6]) + (x[5] + x[7]));
}

TEST(Machine, ScattersAndRepacks) {
  std::vector<int32_t> x = {0x04030201, 0x08070605};
  std::vector<int8_t> y(16, 0);
  run_text(
      "kernel @k(x: i32[2] read, y: i8[16] write) {"
      " store y[ramp(1, 2, 8)] = bitcast i8x8 (load i32x2 x[0]) }",
      {bytes_of(x), bytes_of(y)});
  for (int lane = 0; lane < 8; ++lane) EXPECT_EQ(y[static_cast<size_t>(1 + 2 * lane)], lane + 1);
}

TEST(Machine, CallsMathFunctionsPerLane) {
  std::vector<float> x = random_floats(4, 3);
  std::vector<float> y(4);
  std::vector<float> z(4);
  run_text(
      "kernel @k(x: f32[4] read, y: f32[4] write, z: f32[4] write) {"
      " store y[0] = exp.f32(load f32x4 x[0]) for i in 0 .. 4 { store z[i] = exp.f32(load f32 "
      "x[i]) } }",
      {bytes_of(x), bytes_of(y), bytes_of(z)});
  EXPECT_EQ(y, z);
  for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(y[i], std::exp(x[i]), 1e-6);
}

TEST(Machine, BranchesAreLazy) {
  std::vector<float> x(1, 2);
  std::vector<float> y(1);
  const std::string text =
      "kernel @k(x: f32[1] read, y: f32[1] write) sizes(N) {"
      " store y[0] = if N < 1 then load f32 x[N] else 7:f32 }";
  run_text(text, {bytes_of(x), bytes_of(y)}, {{"N", 5}});
  EXPECT_EQ(y[0], 7);
  run_text(text, {bytes_of(x), bytes_of(y)}, {{"N", 0}});
  EXPECT_EQ(y[0], 2);
}

TEST(Machine, WhileLoopsAndAllocations) {
  std::vector<int64_t> y(1);
  run_text(
      "kernel @k(y: i64[1] write) {\n"
      "  alloc n : i64[2] stack\n"
      "  store n[0] = 27:i64\n"
      "  store n[1] = 0:i64\n"
      "  while load i64 n[0] != 1:i64 {\n"
      "    let v = load i64 n[0]\n"
      "    store n[0] = if v%2:i64 == 0:i64 then v/2:i64 else v*3:i64 + 1:i64\n"
      "    store n[1] = load i64 n[1] + 1:i64\n"
      "  }\n"
      "  store y[0] = load i64 n[1]\n"
      "}",
      {bytes_of(y)});
  EXPECT_EQ(y[0], 111);
}

TEST(Machine, ReportsWhereAnIndexLeavesItsBuffer) {
  std::vector<float> x(4);
  const auto message_of = [&](const std::string& body) {
    try {
      run_text("kernel @k(x: f32[4] update) {" + body + "}", {bytes_of(x)});
    } catch (const InternalError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(message_of("for i in 0 .. 5 { store x[i] = 1:f32 }"),
            "kernel k: store of x[4], which has 4 elements");
  EXPECT_EQ(message_of("store x[0] = load f32 x[-1]"),
            "kernel k: load of x[-1], which has 4 elements");
  EXPECT_EQ(message_of("store x[1] = 1:f32x4"),
            "kernel k: store of x[1 .. 4], which has 4 elements");
  EXPECT_EQ(message_of("define [i in 5] { x[i] = 1:f32 }"),
            "kernel k: index 4 of x in dimension 0, which has 4");
}

}  // namespace
}  // namespace backcast::loop
