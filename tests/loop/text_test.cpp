// What prints also parses, to an equal thing.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "ir/graph/error.h"
#include "ir/loop/math_library.h"
#include "tests/loop/kernels.h"

namespace backcast::loop {
namespace {

void expect_round_trip(const Kernel& kernel) {
  const std::string text = print(kernel);
  const Kernel again = parse_kernel(text);
  EXPECT_TRUE(equal(kernel, again)) << text << "came back as\n" << print(again);
  EXPECT_EQ(print(again), text);
}

Kernel with_value(const Expr& e) {
  Kernel kernel;
  kernel.name = "k";
  kernel.buffers = {{"x", Scalar::f32, {Dim(4)}, AccessMode::update, {}}};
  kernel.sizes = {"N", "load", "two words"};
  kernel.body = let("v", e);
  return kernel;
}

TEST(Text, KernelAsDocumented) {
  const std::string text =
      "kernel @fc1(x: f32[N,64] read, w: f32[64,32] read, y: f32[N,32] write over(x)) sizes(N) "
      "macs "
      "2048 loc(\"fc1\", \"Gemm\") loc(\"a \\\"b\\\"\", \"Relu\", fused_from) {\n"
      "  alloc acc : f32x8[4] registers\n"
      "  for i in 0 .. N {\n"
      "    let base = i*32\n"
      "    unrolled for j in 2 .. +min(N - i, 2) {\n"
      "      if j < 3 & i/4 == 1 | i%7 != 0 {\n"
      "        store acc[j] = fma(load f32x8 w[base + j*8], 0.1:f32x8, load f32x8 acc[j])\n"
      "      } else {\n"
      "        block {\n"
      "          store y[ramp(base, 3, 8)] = -load f32x8 acc[0]\n"
      "        }\n"
      "        store y[i] = (if i > 0 then 1:f32 else nan:f32) - (2:f32 - 3:f32)\n"
      "      }\n"
      "    }\n"
      "    while ~(i < 2) {\n"
      "    }\n"
      "  }\n"
      "  define [i0 in N, j0 in 32] reduce [k in 64] {\n"
      "    acc0: f32 = sum(init 0:f32, x[i0, k]*w[k, j0])\n"
      "    y[i0, j0] = exp.f32(max(acc0, 0:f32))\n"
      "  }\n"
      "}\n";
  const Kernel kernel = parse_kernel(text);
  EXPECT_EQ(print(kernel), text);
  expect_round_trip(kernel);
}

TEST(Text, NumbersKeepTheirBits) {
  const double values[] = {0.0,      -0.0,     0.1,       1e300,
                           -1e-310,  HUGE_VAL, -HUGE_VAL, 1.0f / 3,
                           0x1p-149, 65504.0,  NAN,       std::copysign(NAN, -1.0)};
  for (const double value : values) {
    for (const Scalar scalar : {Scalar::f16, Scalar::bf16, Scalar::f32, Scalar::f64}) {
      expect_round_trip(with_value(float_constant({scalar, 1}, value)));
      expect_round_trip(with_value(float_constant({scalar, 4}, value)));
    }
  }
  for (const int64_t value : {int64_t{0}, int64_t{-1}, INT64_MIN, INT64_MAX}) {
    for (int s = 0; s <= static_cast<int>(Scalar::u64); ++s) {
      expect_round_trip(with_value(int_constant({static_cast<Scalar>(s), 1}, value)));
    }
    expect_round_trip(with_value(int_constant({Scalar::index, 2}, value)));
  }
}

TEST(Text, OddNamesAreQuoted) {
  expect_round_trip(with_value(var("load") + var("two words") * Expr(2)));
  EXPECT_EQ(print(var("two words") + var("load")), "\"two words\" + \"load\"");
}

TEST(Text, NodesAreNotFolded) {
  const auto raw = [](ExprNode node) { return Expr(std::make_shared<const ExprNode>(node)); };
  const Type index;
  const Expr zero = 0;
  const Expr n = var("N");
  for (const Op op : {Op::add, Op::mul, Op::sub, Op::floor_div, Op::div, Op::floor_mod, Op::rem}) {
    const Expr e = raw({.kind = ExprKind::binary, .type = index, .op = op, .args = {n, zero}});
    expect_round_trip(with_value(e));
    expect_round_trip(
        with_value(raw({.kind = ExprKind::unary, .type = index, .op = Op::neg, .args = {e}})));
  }
  const Expr negative =
      raw({.kind = ExprKind::unary, .type = index, .op = Op::neg, .args = {zero}});
  expect_round_trip(with_value(negative));
  expect_round_trip(
      with_value(raw({.kind = ExprKind::unary, .type = index, .op = Op::neg, .args = {negative}})));
  Kernel kernel = with_value(n);
  kernel.body = for_loop("i", 0, 1, block({}));
  expect_round_trip(kernel);
  // A block of one statement is not that statement.
  const StmtNode inner = {.kind = StmtKind::block, .body = {let("v", n)}};
  kernel.body = Stmt(std::make_shared<const StmtNode>(inner));
  expect_round_trip(kernel);
}

TEST(Text, PairProducts) {
  for (const int32_t lanes : {1, 3, 8}) {
    const Expr a = load({Scalar::i32, lanes}, "x", 0);
    const Expr sum = binary(Op::dot2, a + a, a) + a;
    EXPECT_EQ(print(sum).substr(0, 11), "dot2(load i");
    Kernel kernel = with_value(sum);
    kernel.buffers[0].element = Scalar::i32;
    kernel.sizes.push_back("dot2");  // as a name, in quotes
    expect_round_trip(kernel);
  }
}

TEST(Text, Nearest) {
  const Expr nearest = unary(Op::nearest, load({Scalar::f32}, "x", 0));
  EXPECT_EQ(print(nearest), "nearest(load f32 x[0])");
  expect_round_trip(with_value(cast({Scalar::f32}, nearest)));
}

TEST(Text, LaneBits) {
  const Expr a = load({Scalar::f32, 16}, "x", 0);
  const Expr bits = unary(Op::lane_bits, binary(Op::ne, a, float_constant(a.type(), 0)));
  const Expr zeros = unary(Op::trailing_zeros, cast({Scalar::u32}, bits));
  EXPECT_EQ(print(bits), "lane_bits(load f32x16 x[0] != 0:f32x16)");
  expect_round_trip(with_value(cast({Scalar::f32}, zeros)));
}

TEST(Text, BytePairs) {
  for (const int32_t lanes : {1, 3, 8}) {
    const Expr a = load({Scalar::i32, lanes}, "x", 0);
    const Expr sum = unary(Op::even_bytes, a + a) + unary(Op::odd_bytes, a);
    EXPECT_EQ(print(sum).substr(0, 18), "even_bytes(load i3");
    Kernel kernel = with_value(sum);
    kernel.buffers[0].element = Scalar::i32;
    kernel.sizes.push_back("odd_bytes");  // as a name, in quotes
    expect_round_trip(kernel);
  }
}

/// Random expressions of every infix operator: parentheses must be right.
class RandomExpr {
 public:
  explicit RandomExpr(uint32_t seed) : random_(seed) {}
  Expr any(Type type, int depth) {
    if (depth == 0) return leaf(type);
    if (type.scalar == Scalar::boolean) return boolean(type, depth);
    if (pick(6) == 0)
      return select(any({Scalar::boolean, type.lanes}, depth - 1), sub(type, depth),
                    sub(type, depth));
    if (pick(6) == 0)
      return if_then_else(any({Scalar::boolean, 1}, depth - 1), sub(type, depth), sub(type, depth));
    if (pick(8) == 0) return unary(Op::neg, sub(type, depth));
    if (type.scalar == Scalar::f32) {
      static constexpr Op kOps[] = {Op::add, Op::sub, Op::mul, Op::div, Op::min};
      return binary(kOps[pick(5)], sub(type, depth), sub(type, depth));
    }
    static constexpr Op kOps[] = {Op::add,       Op::sub, Op::mul,     Op::floor_div,
                                  Op::floor_mod, Op::div, Op::bit_and, Op::bit_or,
                                  Op::bit_xor,   Op::shl, Op::shr,     Op::max};
    return binary(kOps[pick(12)], sub(type, depth), sub(type, depth));
  }

 private:
  int pick(int count) { return std::uniform_int_distribution<int>(0, count - 1)(random_); }
  Expr sub(Type type, int depth) { return any(type, depth - 1); }
  Expr leaf(Type type) {
    if (pick(2) == 0 && type == Type{}) return var("N");
    if (type.scalar == Scalar::f32 && pick(2) == 0) return load(type, "x", 0);
    if (type.scalar == Scalar::boolean && type.lanes == 1) return var("N") < Expr(pick(9));
    return constant(type, pick(20) - 10);
  }
  Expr boolean(Type type, int depth) {
    static constexpr Op kOps[] = {Op::bit_and, Op::bit_or, Op::bit_xor, Op::eq};
    if (pick(2) == 0) return binary(kOps[pick(4)], sub(type, depth), sub(type, depth));
    if (pick(4) == 0) return unary(Op::bit_not, sub(type, depth));
    const Type operands = {pick(2) == 0 ? Scalar::i32 : Scalar::f32, type.lanes};
    static constexpr Op kCompare[] = {Op::lt, Op::le, Op::gt, Op::ge, Op::eq, Op::ne};
    return binary(kCompare[pick(6)], sub(operands, depth), sub(operands, depth));
  }
  std::mt19937 random_;
};

TEST(Text, RandomExpressions) {
  RandomExpr random(5);
  const Type types[] = {
      {}, {Scalar::f32, 1}, {Scalar::f32, 8}, {Scalar::i32, 1}, {Scalar::boolean, 1}};
  for (int round = 0; round < 1500; ++round) {
    expect_round_trip(with_value(random.any(types[round % 5], 1 + round % 5)));
  }
}

TEST(Text, MathFunctions) {
  for (const bool fma : {false, true}) {
    for (const auto& [name, function] : math_library(fma)) {
      for (const int32_t lanes : {1, 8}) {
        const MathFunction wide = function.widen(lanes);
        const std::string text = print(wide);
        const std::map<std::string, MathFunction> again = parse_functions(text);
        ASSERT_EQ(again.size(), 1u);
        const MathFunction& back = again.begin()->second;
        ASSERT_EQ(back.lets.size(), wide.lets.size());
        for (size_t i = 0; i < wide.lets.size(); ++i) {
          EXPECT_TRUE(equal(back.lets[i].second, wide.lets[i].second)) << name;
        }
        EXPECT_TRUE(equal(back.result, wide.result)) << name;
        EXPECT_EQ(print(back), text);
      }
    }
  }
}

TEST(Text, Programs) {
  const std::vector<double> many(40, 1.25);
  Program program = parse_program(
      "program @net\nsymbol N in 1..8\nsymbol M in 2..\narena 64 bound 32 align 16\n"
      "buffer %view : f32[2] arena view of %whole at N*2 loc(\"v\", \"Slice\")\n"
      "buffer %whole : f32[N,4] arena align 8 offset 0\n"
      "buffer %x : f32[N,4] input\nbuffer %\"odd name\" : f16[3] output\n"
      "buffer %c : f16[3] constant {1.5, -inf, nan(0x7e01)}\n"
      "buffer %z : i64[0,4] constant i32[0] {}\nbuffer %s : bool[] state step {true}\n"
      "entry @run(%x) -> (%\"odd name\") { copy %c, %\"odd name\" loc(\"a\", \"b\") }\n");
  Buffer big;
  big.name = "big";
  big.shape = {Dim(40)};
  big.kind = BufferClass::constant;
  big.value = Literal::from_doubles(ElementType::f32, {40}, many);
  program.buffers.push_back(big);
  program.functions.emplace("exp.f32", math_library(false).at("exp.f32"));
  program.kernels.emplace("k", with_value(var("N")));
  const std::string text = print(program);
  const Program again = parse_program(text, print_constants(program));
  EXPECT_TRUE(equal(program, again)) << text << "came back as\n" << print(again);
  EXPECT_THROW(parse_program(text), CompileError);
  std::string damaged = print_constants(program);
  damaged.back() = static_cast<char>(damaged.back() ^ 1);
  EXPECT_THROW(parse_program(text, damaged), CompileError);
}

}  // namespace
}  // namespace backcast::loop
