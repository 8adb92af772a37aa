// Every operation of the loop IR, on every type, as scalars and as vectors: machine code against
// interpreter.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>

#include "backend/llvm/host.h"
#include "ir/loop/math_library.h"
#include "tests/backend_llvm/program_helpers.h"

namespace backcast::testing {
namespace {

using loop::Expr;
using loop::Op;
using loop::Scalar;
using loop::Type;

constexpr int64_t kCount = 256;
constexpr Scalar kIntegers[] = {Scalar::i8, Scalar::i16, Scalar::i32, Scalar::i64,
                                Scalar::u8, Scalar::u16, Scalar::u32, Scalar::u64};
constexpr Scalar kFloats[] = {Scalar::f32, Scalar::f64};

/// A kernel over inputs a, b, c of one type that writes each value it is given to an output of its
/// own, `lanes` elements at a time.
class Sheet {
 public:
  Sheet(Scalar scalar, int32_t lanes)
      : type_{scalar, lanes}, lanes_(lanes), count_(kCount / lanes * lanes) {
    kernel_.name = "k";
    for (const char* name : {"a", "b", "c"}) {
      kernel_.buffers.push_back(read_buffer(name, scalar, {count_}));
    }
  }

  Expr operand(const char* name) const { return loop::load(type_, name, start()); }
  Expr constant(double value) const { return loop::constant(type_, value); }
  Expr start() const { return loop::var("i") * lanes_; }

  void add(const std::string& name, const Expr& value) {
    kernel_.buffers.push_back(write_buffer(name, value.type().scalar, {count_}));
    body_.push_back(loop::store(name, start(), value));
  }

  void check() {
    kernel_.body = loop::for_loop("i", 0, count_ / lanes_, loop::block(body_));
    std::vector<Literal> inputs;
    for (uint64_t seed = 1; seed <= 3; ++seed) {
      inputs.push_back(special_values(loop::element_of(type_.scalar), count_, seed));
    }
    expect_agreement(single_kernel(kernel_), inputs);
  }

 private:
  Type type_;
  int32_t lanes_;
  int64_t count_;  // whole vectors
  loop::Kernel kernel_;
  std::vector<loop::Stmt> body_;
};

void add_comparisons(Sheet& sheet, const Expr& a, const Expr& b) {
  for (const Op op : {Op::eq, Op::ne, Op::lt, Op::le, Op::gt, Op::ge}) {
    sheet.add(fmt::format("{}", name_of(op)), loop::binary(op, a, b));
  }
  sheet.add("select", loop::select(loop::binary(Op::lt, a, b), a, b));
}

class Lanes : public ::testing::TestWithParam<int32_t> {};

TEST_P(Lanes, Integers) {
  for (const Scalar scalar : kIntegers) {
    SCOPED_TRACE(loop::name_of(scalar));
    Sheet sheet(scalar, GetParam());
    const Expr a = sheet.operand("a");
    const Expr b = sheet.operand("b");
    for (const Op op : {Op::add, Op::sub, Op::mul, Op::min, Op::max, Op::bit_and, Op::bit_or,
                        Op::bit_xor, Op::mul_high}) {
      sheet.add(fmt::format("{}", name_of(op)), loop::binary(op, a, b));
    }
    const double width = 8.0 * static_cast<double>(byte_size(loop::element_of(scalar)));
    const Expr shift = loop::binary(Op::bit_and, b, sheet.constant(width - 1));
    sheet.add("shl", loop::binary(Op::shl, a, shift));
    sheet.add("shr", loop::binary(Op::shr, a, shift));
    const Expr zero = sheet.constant(0);
    const Expr divisor = loop::select(loop::binary(Op::eq, b, zero), sheet.constant(1), b);
    sheet.add("div", loop::binary(Op::div, a, divisor));
    sheet.add("rem", loop::binary(Op::rem, a, divisor));
    for (const Op op : {Op::neg, Op::abs, Op::bit_not}) {
      sheet.add(fmt::format("{}", name_of(op)), loop::unary(op, a));
    }
    add_comparisons(sheet, a, b);
    sheet.check();
  }
}

TEST_P(Lanes, Floats) {
  const TargetInfo host = host_target();
  for (const Scalar scalar : kFloats) {
    SCOPED_TRACE(loop::name_of(scalar));
    Sheet sheet(scalar, GetParam());
    const Expr a = sheet.operand("a");
    const Expr b = sheet.operand("b");
    for (const Op op : {Op::add, Op::sub, Op::mul, Op::div, Op::min, Op::max}) {
      sheet.add(fmt::format("{}", name_of(op)), loop::binary(op, a, b));
    }
    for (const Op op : {Op::neg, Op::abs, Op::sqrt, Op::is_nan}) {
      sheet.add(fmt::format("{}", name_of(op)), loop::unary(op, a));
    }
    // Rounded twice: a product and a sum must not become one fused operation.
    sheet.add("mul_add", a * b + sheet.operand("c"));
    add_comparisons(sheet, a, b);
    sheet.check();
  }
}

TEST_P(Lanes, FusedAndRounding) {
  const TargetInfo host = host_target();
  if (!host.has_fma || !host.has_rounding) GTEST_SKIP() << "not on this host";
  for (const Scalar scalar : kFloats) {
    Sheet sheet(scalar, GetParam());
    const Expr a = sheet.operand("a");
    sheet.add("fma", loop::fma(a, sheet.operand("b"), sheet.operand("c")));
    for (const Op op : {Op::floor, Op::ceil, Op::round_even, Op::trunc}) {
      sheet.add(fmt::format("{}", name_of(op)), loop::unary(op, a));
    }
    sheet.check();
  }
}

TEST_P(Lanes, Casts) {
  std::vector<Scalar> all(std::begin(kIntegers), std::end(kIntegers));
  all.insert(all.end(), {Scalar::f32, Scalar::f64, Scalar::boolean});
  for (const Scalar from : all) {
    SCOPED_TRACE(loop::name_of(from));
    Sheet sheet(from, GetParam());
    const Expr a = sheet.operand("a");
    for (const Scalar to : all) {
      Expr value = a;
      if (loop::is_float(from) && !loop::is_float(to) && to != Scalar::boolean) {
        // Into every integer's range: NaN gives the lower bound, by the rule of max.
        value = loop::min(loop::max(a, sheet.constant(0)), sheet.constant(100.75));
      }
      sheet.add(fmt::format("to_{}", loop::name_of(to)), loop::cast({to, GetParam()}, value));
    }
    sheet.check();
  }
}

TEST_P(Lanes, Booleans) {
  Sheet sheet(Scalar::boolean, GetParam());
  const Expr a = sheet.operand("a");
  const Expr b = sheet.operand("b");
  for (const Op op : {Op::bit_and, Op::bit_or, Op::bit_xor, Op::eq, Op::ne}) {
    sheet.add(fmt::format("{}", name_of(op)), loop::binary(op, a, b));
  }
  sheet.add("not", loop::unary(Op::bit_not, a));
  sheet.add("select", loop::select(a, b, sheet.operand("c")));
  sheet.check();
}

TEST_P(Lanes, Bits) {
  Sheet floats(Scalar::f32, GetParam());
  floats.add("i32", loop::bitcast({Scalar::i32, GetParam()}, floats.operand("a")));
  floats.add("u32", loop::bitcast({Scalar::u32, GetParam()}, floats.operand("b")));
  floats.check();
  Sheet doubles(Scalar::f64, GetParam());
  doubles.add("u64", loop::bitcast({Scalar::u64, GetParam()}, doubles.operand("a")));
  doubles.check();
  Sheet halves(Scalar::f16, GetParam());
  halves.add("u16", loop::bitcast({Scalar::u16, GetParam()}, halves.operand("a")));
  halves.add("copy", halves.operand("b"));
  halves.check();
}

TEST_P(Lanes, Halves) {
  if (!host_target().converts_halves) GTEST_SKIP() << "not on this host";
  const Type half{Scalar::f16, GetParam()}, single{Scalar::f32, GetParam()};
  Sheet halves(Scalar::f16, GetParam());
  halves.add("to_f32", loop::cast(single, halves.operand("a")));
  halves.check();
  Sheet floats(Scalar::f32, GetParam());
  floats.add("to_f16", loop::cast(half, floats.operand("a")));
  floats.check();
}

TEST_P(Lanes, MathFunctions) {
  Sheet sheet(Scalar::f32, GetParam());
  const Type type{Scalar::f32, GetParam()};
  for (const char* name : {"exp.f32", "tanh.f32", "sigmoid.f32", "log.f32"}) {
    ASSERT_TRUE(loop::math_library(true).contains(name)) << name;
    sheet.add(std::string(name, 3), loop::call(name, type, {sheet.operand("a")}));
  }
  sheet.check();
}

INSTANTIATE_TEST_SUITE_P(Widths, Lanes, ::testing::Values(1, 4, 16));

TEST(Operations, PairProducts) {
  for (const int32_t lanes : {1, 2, 3, 4, 6, 8, 16, 32}) {
    SCOPED_TRACE(lanes);
    Sheet sheet(Scalar::i32, lanes);
    const Expr a = sheet.operand("a"), b = sheet.operand("b"), c = sheet.operand("c");
    const Expr product = loop::binary(Op::dot2, a, b);
    sheet.add("product", product);
    sheet.add("sum", c + loop::binary(Op::dot2, b, c));
    sheet.add("sums", loop::binary(Op::dot2, a, c) + loop::binary(Op::dot2, b, c) + product);
    sheet.add("by_constant", loop::binary(Op::dot2, a, loop::int_constant(a.type(), -65533)));
    // Halves of -2^15 where a is negative: the one sum that wraps.
    const Expr sign = loop::binary(Op::shr, a, loop::int_constant(a.type(), 31));
    const Expr lowest = sign && loop::int_constant(a.type(), static_cast<int32_t>(0x80008000));
    sheet.add("lowest", loop::binary(Op::dot2, lowest, lowest));
    sheet.check();
  }
}

TEST(Operations, ByteProducts) {
  for (const int32_t lanes : {1, 2, 3, 4, 6, 8, 16, 32}) {
    for (const Op op : {Op::dot4, Op::dot4_signed}) {
      SCOPED_TRACE(lanes);
      Sheet sheet(Scalar::i32, lanes);
      const Expr a = sheet.operand("a"), b = sheet.operand("b"), c = sheet.operand("c");
      const Expr product = loop::binary(op, a, b);
      sheet.add("product", product);
      sheet.add("turned", loop::binary(op, b, a));
      sheet.add("sum", c + loop::binary(op, b, c));
      sheet.add("sums", loop::binary(op, a, c) + loop::binary(op, b, c) + product);
      sheet.add("by_constant", loop::binary(op, a, loop::int_constant(a.type(), -65533)));
      // All bytes 255 (or -1) and -128 where a is negative.
      const Expr sign = loop::binary(Op::shr, a, loop::int_constant(a.type(), 31));
      const Expr lowest = sign && loop::int_constant(a.type(), static_cast<int32_t>(0x80808080));
      sheet.add("largest", loop::binary(op, sign, lowest) + b);
      sheet.add("squares", loop::binary(op, lowest, lowest));
      sheet.check();
    }
  }
}

TEST(Operations, BytesOfTables) {
  for (const int32_t lanes : {1, 2, 4, 8, 16, 32, 64, 128}) {
    for (const Scalar scalar : {Scalar::i8, Scalar::u8}) {
      SCOPED_TRACE(lanes);
      Sheet sheet(scalar, lanes);
      const auto look_up = [&](const char* table, const Expr& place) {
        const Expr byte = loop::cast({Scalar::u8, lanes}, place);
        return loop::load({scalar, lanes}, table, loop::cast({Scalar::index, lanes}, byte));
      };
      sheet.add("found", look_up("a", sheet.operand("b")));
      sheet.add("again", look_up("c", look_up("a", sheet.operand("b") + sheet.constant(64))));
      sheet.check();
    }
  }
}

/// 0 < |x| beside a test for NaN, each alone: LLVM leaves alone what has several uses.
TEST(Operations, MagnitudesAboveZero) {
  for (const Scalar scalar : kFloats) {
    for (const int32_t lanes : {1, 4, 8}) {
      SCOPED_TRACE(lanes);
      const auto check = [&](const std::function<Expr(Expr x, Expr zero)>& value) {
        Sheet sheet(scalar, lanes);
        const Expr x = loop::unary(Op::abs, sheet.operand("a"));
        const Expr number = value(x, sheet.constant(0));
        sheet.add("y", loop::select(loop::unary(Op::is_nan, x), x, number));
        sheet.check();
      };
      check([](const Expr& x, const Expr& zero) { return loop::max(x, zero); });
      check([](const Expr& x, const Expr& zero) { return loop::min(zero, x); });
      check([](const Expr& x, const Expr& zero) {
        return loop::select(loop::binary(Op::gt, x, zero), x, zero);
      });
      check([](const Expr& x, const Expr& zero) { return loop::select(zero < x, x, zero); });
    }
  }
}

TEST(Operations, BytePairs) {
  for (const int32_t lanes : {1, 2, 3, 4, 8, 16}) {
    SCOPED_TRACE(lanes);
    Sheet sheet(Scalar::i32, lanes);
    const Expr a = sheet.operand("a"), b = sheet.operand("b");
    const Expr even = loop::unary(Op::even_bytes, a), odd = loop::unary(Op::odd_bytes, a);
    sheet.add("even", even);
    sheet.add("odd", odd);
    sheet.add("sum", loop::binary(Op::dot2, b, odd) + loop::binary(Op::dot2, a, even) + b);
    sheet.check();
  }
}

TEST(Operations, Nearest) {
  if (!host_target().converts_to_nearest) GTEST_SKIP() << "not on this host";
  for (const int32_t lanes : {1, 2, 3, 4, 8, 16}) {
    SCOPED_TRACE(lanes);
    Sheet sheet(Scalar::i16, lanes);
    // Quarters: ties, and what lies beside them.
    const Type f32{Scalar::f32, lanes};
    const Expr a = loop::cast(f32, sheet.operand("a")) * loop::float_constant(f32, 0.25);
    sheet.add("nearest", loop::unary(Op::nearest, a));
    sheet.check();
  }
}

TEST(Operations, LaneBits) {
  for (const Scalar scalar : {Scalar::f32, Scalar::f64, Scalar::i8}) {
    for (const int32_t lanes : {2, 3, 4, 8, 16, 32, 64}) {
      SCOPED_TRACE(lanes);
      Sheet sheet(scalar, lanes);
      const Expr a = sheet.operand("a"), b = sheet.operand("b");
      const Expr bits = loop::unary(Op::lane_bits, loop::binary(Op::lt, a, b));
      sheet.add("bits", loop::broadcast(bits, lanes));
      sheet.check();
    }
  }
}

TEST(Operations, TrailingZeros) {
  for (const Scalar scalar : {Scalar::u32, Scalar::u64}) {
    Sheet sheet(scalar, 1);
    const Expr a = sheet.operand("a");
    const Expr lowest = loop::binary(Op::bit_or, a, sheet.constant(1 << 20));
    sheet.add("zeros", loop::unary(Op::trailing_zeros, lowest));
    sheet.check();
  }
}

TEST(Operations, FloorDivisionOfIndices) {
  loop::Kernel kernel;
  kernel.name = "k";
  kernel.buffers = {read_buffer("a", Scalar::i64, {kCount}),
                    read_buffer("b", Scalar::i64, {kCount})};
  const Expr i = loop::var("i");
  const Expr a = loop::cast({Scalar::index, 1}, loop::load({Scalar::i64, 1}, "a", i));
  const Expr b = loop::cast({Scalar::index, 1}, loop::load({Scalar::i64, 1}, "b", i));
  const Expr positive = loop::max(b, 1);
  const std::pair<const char*, Expr> cases[] = {{"by_b", positive}, {"by_8", 8}, {"by_7", 7}};
  std::vector<loop::Stmt> body;
  for (const auto& [name, divisor] : cases) {
    for (const Op op : {Op::floor_div, Op::floor_mod}) {
      const std::string output = fmt::format("{}_{}", name_of(op), name);
      kernel.buffers.push_back(write_buffer(output, Scalar::i64, {kCount}));
      body.push_back(
          loop::store(output, i, loop::cast({Scalar::i64, 1}, loop::binary(op, a, divisor))));
    }
  }
  kernel.body = loop::for_loop("i", 0, kCount, loop::block(body));
  expect_agreement(single_kernel(kernel), {special_values(ElementType::i64, kCount, 5),
                                           special_values(ElementType::i64, kCount, 6)});
}

TEST(Operations, LanesAcrossAndTogether) {
  Sheet sheet(Scalar::f32, 8);
  const Expr a = sheet.operand("a");
  const Expr b = sheet.operand("b");
  sheet.add("reversed", loop::shuffle({a}, {7, 6, 5, 4, 3, 2, 1, 0}));
  sheet.add("interleaved", loop::shuffle({a, b}, {0, 8, 1, 9, 2, 10, 3, 11}));
  sheet.add("three", loop::shuffle({a, b, sheet.operand("c")}, {0, 8, 16, 1, 9, 17, 2, 23}));
  for (const Op op : {Op::add, Op::max, Op::min, Op::mul}) {
    sheet.add(fmt::format("reduce_{}", name_of(op)), loop::broadcast(loop::reduce_lanes(op, a), 8));
  }
  sheet.add("lane", loop::broadcast(loop::shuffle({a}, {5}), 8));
  sheet.check();
}

}  // namespace
}  // namespace backcast::testing
