// Every operation on every type, on scalars and on vectors; casts and selections.
#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "tests/backend_c/cases.h"

namespace backcast::c_test {

using loop::Expr;
using loop::Op;
using loop::Scalar;
using loop::Stmt;
using loop::Type;

namespace {

constexpr int64_t kCount = 64;
constexpr ElementType kNumbers[] = {
    ElementType::i8,  ElementType::i16, ElementType::i32, ElementType::i64, ElementType::u8,
    ElementType::u16, ElementType::u32, ElementType::u64, ElementType::f32, ElementType::f64};
constexpr Op kFloatOps[] = {Op::add, Op::sub, Op::mul, Op::div, Op::min, Op::max};
constexpr Op kIntegerOps[] = {Op::add,     Op::sub,    Op::mul,     Op::min,     Op::max,
                              Op::bit_and, Op::bit_or, Op::bit_xor, Op::mul_high};
constexpr Op kComparisons[] = {Op::eq, Op::ne, Op::lt, Op::le, Op::gt, Op::ge};

int32_t lanes_of(ElementType element) {
  return static_cast<int32_t>(std::min<int64_t>(32 / byte_size(element), 16));
}

/// A loop over groups of `lanes` elements with a store per result.
class Elementwise {
 public:
  Elementwise(const std::string& name, int32_t lanes) : builder_(name), lanes_(lanes) {}

  Expr input(const std::string& name, const Literal& value) {
    builder_.input(name, value, {Dim(kCount)});
    return loop::load({loop::scalar_of(value.element()), lanes_}, name, index());
  }
  /// A number that every group reads.
  Expr first(const std::string& name, ElementType element, double value) {
    builder_.input(name, Literal::from_doubles(element, {1}, {value}), {Dim(1)});
    return loop::load({loop::scalar_of(element)}, name, loop::index_constant(0));
  }
  void output(Expr value) {
    const std::string name = fmt::format("y{}", stores_.size());
    builder_.output(name, loop::element_of(value.type().scalar), {Dim(kCount)});
    stores_.push_back(loop::store(name, index(), std::move(value)));
  }
  Case finish() {
    return builder_.finish(loop::for_loop("i", 0, kCount / lanes_, loop::block(stores_)));
  }
  ProgramBuilder& builder() { return builder_; }

 private:
  Expr index() const { return loop::var("i") * loop::index_constant(lanes_); }
  ProgramBuilder builder_;
  int32_t lanes_;
  std::vector<Stmt> stores_;
};

Literal without_zeros(const Literal& value) {
  std::vector<std::byte> bytes(value.bytes().begin(), value.bytes().end());
  const auto size = static_cast<size_t>(byte_size(value.element()));
  for (int64_t i = 0; i < value.element_count(); ++i) {
    if (value.as_int(i) == 0) bytes[static_cast<size_t>(i) * size] = std::byte{3};
  }
  return Literal(value.element(), value.shape(), std::move(bytes));
}

Case arithmetic(ElementType element, int32_t lanes) {
  Elementwise e(fmt::format("arith_{}_{}", name_of(element), lanes), lanes);
  const Expr a = e.input("a", interesting(element, kCount, 1));
  const Expr b = e.input("b", interesting(element, kCount, 2));
  for (const Op op : kComparisons) e.output(loop::binary(op, a, b));
  if (is_float(element)) {
    for (const Op op : kFloatOps) e.output(loop::binary(op, a, b));
    for (const Op op : {Op::neg, Op::abs, Op::is_nan}) e.output(loop::unary(op, a));
    e.output(a * b + a);  // must not be fused
    return e.finish();
  }
  const int64_t bits = 8 * byte_size(element);
  const Expr divisor = e.input("d", without_zeros(interesting(element, kCount, 3)));
  const Expr positive = e.input("p", without_zeros(small_values(element, kCount, 100, 4)));
  const Expr count = e.input("s", small_values(element, kCount, bits, 5));
  for (const Op op : kIntegerOps) e.output(loop::binary(op, a, b));
  for (const Op op : {Op::div, Op::rem}) e.output(loop::binary(op, a, divisor));
  for (const Op op : {Op::floor_div, Op::floor_mod}) e.output(loop::binary(op, a, positive));
  for (const Op op : {Op::shl, Op::shr}) e.output(loop::binary(op, a, count));
  for (const Op op : {Op::neg, Op::abs, Op::bit_not}) e.output(loop::unary(op, a));
  const Type type = a.type();
  for (const int64_t c : {int64_t{-1}, int64_t{7}}) {
    if (is_signed(element) || c > 0) {
      e.output(loop::binary(Op::div, a, loop::int_constant(type, c)));
    }
  }
  for (const int64_t c : {int64_t{8}, int64_t{5}}) {
    e.output(loop::floor_div(a, loop::int_constant(type, c)));
    e.output(loop::floor_mod(a, loop::int_constant(type, c)));
  }
  return e.finish();
}

/// Truth values from comparisons of types of different widths.
Case booleans(int32_t lanes) {
  Elementwise e(fmt::format("booleans_{}", lanes), lanes);
  const Expr p = e.input("p", interesting(ElementType::boolean, kCount, 6));
  const Expr x = e.input("x", interesting(ElementType::f64, kCount, 7));
  const Expr y = e.input("y", interesting(ElementType::i8, kCount, 8));
  const Expr less = loop::binary(Op::lt, x, loop::float_constant(x.type(), 0.25));
  const Expr negative = loop::binary(Op::lt, y, loop::int_constant(y.type(), 0));
  for (const Op op : {Op::bit_and, Op::bit_or, Op::bit_xor, Op::eq, Op::ne, Op::lt, Op::le, Op::gt,
                      Op::ge, Op::min, Op::max}) {
    e.output(loop::binary(op, p, less));
    e.output(loop::binary(op, less, negative));
  }
  e.output(loop::unary(Op::bit_not, negative));
  e.output(loop::select(p, less, negative));
  for (const Scalar s : {Scalar::i8, Scalar::i32, Scalar::u64, Scalar::f32, Scalar::f64}) {
    e.output(loop::cast({s, lanes}, p));
    e.output(loop::cast({s, lanes}, less));
  }
  return e.finish();
}

Case casts(ElementType from, int32_t lanes) {
  Elementwise e(fmt::format("cast_{}_{}", name_of(from), lanes), lanes);
  const Expr in_range = e.input("r", small_values(from, kCount, 100, 9));
  const Expr any = e.input("a", interesting(from, kCount, 10));
  e.output(loop::cast({Scalar::boolean, lanes}, any));
  for (const ElementType to : kNumbers) {
    const bool may_overflow = is_float(from) && is_integer(to);
    e.output(loop::cast({loop::scalar_of(to), lanes}, may_overflow ? in_range : any));
    if (is_signed(from) && is_signed(to)) {
      e.output(loop::cast({loop::scalar_of(to), lanes}, loop::unary(Op::neg, in_range)));
    }
  }
  return e.finish();
}

Case bit_casts(int32_t lanes) {
  Elementwise e(fmt::format("bits_{}", lanes), lanes);
  const Expr f = e.input("f", interesting(ElementType::f32, kCount, 11));
  const Expr i = e.input("i", interesting(ElementType::i32, kCount, 12));
  const Expr d = e.input("d", interesting(ElementType::f64, kCount, 13));
  const Expr l = e.input("l", interesting(ElementType::u64, kCount, 14));
  e.output(loop::bitcast({Scalar::i32, lanes}, f));
  e.output(loop::bitcast({Scalar::u32, lanes}, f));
  e.output(loop::bitcast({Scalar::f32, lanes}, i));
  e.output(loop::bitcast({Scalar::u32, lanes}, i));
  e.output(loop::bitcast({Scalar::i64, lanes}, d));
  e.output(loop::bitcast({Scalar::f64, lanes}, l));
  return e.finish();
}

Case selections(ElementType element, int32_t lanes) {
  Elementwise e(fmt::format("select_{}_{}", name_of(element), lanes), lanes);
  const Expr a = e.input("a", interesting(element, kCount, 15));
  const Expr b = e.input("b", interesting(element, kCount, 16));
  const Expr p = e.input("p", interesting(ElementType::boolean, kCount, 17));
  e.output(loop::select(p, a, b));
  e.output(loop::select(loop::binary(Op::lt, a, b), a, loop::constant(a.type(), 3)));
  // A shared node, used twice in one statement.
  const Expr shared = a * b;
  e.output(shared + loop::max(shared, a));
  return e.finish();
}

Case byte_products(Op op, int32_t lanes) {
  Elementwise e(fmt::format("{}_{}", loop::name_of(op), lanes), lanes);
  const Expr a = e.input("a", interesting(ElementType::i32, kCount, 23));
  const Expr b = e.input("b", interesting(ElementType::i32, kCount, 24));
  const Expr product = loop::binary(op, a, b);
  e.output(product);
  e.output(loop::binary(op, b, a) + b);
  e.output(a + loop::binary(op, b, b) + product);
  e.output(loop::binary(op, a, loop::int_constant(a.type(), -65533)));
  // All bytes 255 (or -1) and -128 where a is negative.
  const Expr sign = loop::binary(Op::shr, a, loop::int_constant(a.type(), 31));
  const Expr lowest = sign && loop::int_constant(a.type(), static_cast<int32_t>(0x80808080));
  e.output(loop::binary(op, sign, lowest) + a);
  e.output(loop::binary(op, lowest, lowest));
  // All lanes added up, and added to a sum.
  if (lanes > 1) {
    const Expr all = loop::reduce_lanes(Op::add, product), first = loop::reduce_lanes(Op::max, a);
    e.output(loop::broadcast(all, lanes));
    e.output(loop::broadcast(first + loop::reduce_lanes(Op::add, loop::binary(op, a, b)), lanes));
  }
  return e.finish();
}

/// Bytes at places that bytes tell, of every quarter of a table.
Case byte_look_ups(ElementType element, int32_t lanes) {
  Elementwise e(fmt::format("look_up_{}_{}", name_of(element), lanes), lanes);
  constexpr int64_t kTable = 256;
  e.builder().input("table", interesting(element, kTable, 27), {Dim(kTable)});
  const Expr place = e.input("a", interesting(ElementType::u8, kCount, 28));
  for (const int32_t first : {0, 64, 128, 192}) {
    const Expr moved = place + loop::int_constant(place.type(), first);
    e.output(loop::load({loop::scalar_of(element), lanes}, "table",
                        loop::cast({Scalar::index, lanes}, moved)));
  }
  return e.finish();
}

Case lane_bits(ElementType element, int32_t lanes) {
  Elementwise e(fmt::format("bits_{}_{}", name_of(element), lanes), lanes);
  const Expr a = e.input("a", interesting(element, kCount, 25));
  const Expr b = e.input("b", interesting(element, kCount, 26));
  for (const Op op : {Op::ne, Op::lt}) {
    const Expr bits = loop::unary(Op::lane_bits, loop::binary(op, a, b));
    e.output(loop::broadcast(bits, lanes));
    const loop::Type word{lanes > 32 ? loop::Scalar::u64 : loop::Scalar::u32, 1};
    const Expr some =
        loop::binary(Op::bit_or, loop::cast(word, bits), loop::int_constant(word, 1 << 5));
    const Expr zeros = loop::cast({loop::Scalar::u8, 1}, loop::unary(Op::trailing_zeros, some));
    e.output(loop::broadcast(zeros, lanes));
  }
  return e.finish();
}

Case pair_products(int32_t lanes) {
  Elementwise e(fmt::format("pairs_{}", lanes), lanes);
  const Expr a = e.input("a", interesting(ElementType::i32, kCount, 20));
  const Expr b = e.input("b", interesting(ElementType::i32, kCount, 21));
  // Words of two numbers each.
  e.builder().input("x", interesting(ElementType::i16, 2 * kCount, 22), {Dim(2 * kCount)});
  const Expr halves =
      loop::load({Scalar::i16, 2 * lanes}, "x", loop::var("i") * loop::index_constant(2 * lanes));
  const Expr x = loop::bitcast({Scalar::i32, lanes}, halves);
  const Expr product = loop::binary(Op::dot2, a, b);
  e.output(product);
  e.output(loop::binary(Op::dot2, x, a) + b);
  e.output(a + loop::binary(Op::dot2, x, b) + product);
  e.output(loop::binary(Op::dot2, a, loop::int_constant(a.type(), -65533)));
  // Halves of -2^15 where a is negative: the one sum that wraps.
  const Expr sign = loop::binary(Op::shr, a, loop::int_constant(a.type(), 31));
  const Expr lowest = sign && loop::int_constant(a.type(), static_cast<int32_t>(0x80008000));
  e.output(loop::binary(Op::dot2, lowest, lowest));
  // Four bytes in a word.
  const Expr even = loop::unary(Op::even_bytes, a), odd = loop::unary(Op::odd_bytes, a);
  e.output(even);
  e.output(odd);
  e.output(b + loop::binary(Op::dot2, x, even) + loop::binary(Op::dot2, b, odd));
  return e.finish();
}

/// Of quarters within 2^22: ties, and what lies beside them.
Case nearest(int32_t lanes) {
  constexpr int64_t kEnd = int64_t{1} << 24;
  Elementwise e(fmt::format("nearest_{}", lanes), lanes);
  const Expr few = e.input("few", small_values(ElementType::i32, kCount, 64, 31));
  const Expr many = e.input("many", small_values(ElementType::i32, kCount, 2 * kEnd, 32));
  const Type f32{Scalar::f32, lanes};
  for (const auto& [quarters, middle] : {std::pair{few, int64_t{32}}, std::pair{many, kEnd}}) {
    const Expr around = quarters - loop::int_constant(quarters.type(), middle);
    e.output(loop::unary(Op::nearest, loop::cast(f32, around) * loop::float_constant(f32, 0.25)));
  }
  return e.finish();
}

/// The values with every denormal made zero: vectors of some machines flush them.
Literal without_denormals(const Literal& value) {
  std::vector<double> values = value.as_doubles();
  for (double& x : values) {
    if (std::abs(x) < std::numeric_limits<float>::min()) x = std::copysign(0.0, x);
  }
  return Literal::from_doubles(value.element(), value.shape(), values);
}

/// What a vector unit does with registers of four: choices, and sums of products with a scalar.
Case registers_of_four() {
  constexpr int32_t kLanes = 4;
  Elementwise e("registers_of_four", kLanes);
  const Expr a = e.input("a", without_denormals(interesting(ElementType::f32, kCount, 41)));
  const Expr b = e.input("b", without_denormals(interesting(ElementType::f32, kCount, 42)));
  const Expr i = e.input("i", interesting(ElementType::i32, kCount, 43));
  const Expr j = e.input("j", interesting(ElementType::i32, kCount, 44));
  const Expr small = e.input("s", small_values(ElementType::i32, kCount, 1000, 45));
  const Expr exact = loop::cast(a.type(), small);
  for (const auto& [x, y] : {std::pair{a, b}, std::pair{i, j}}) {
    for (const Op op : {Op::eq, Op::ne, Op::lt, Op::le, Op::gt, Op::ge}) {
      const Expr holds = loop::binary(op, x, y);
      e.output(loop::select(holds, x, y));
      e.output(loop::select(holds, exact, loop::unary(Op::neg, exact)));
    }
    for (const Op op : {Op::min, Op::max}) e.output(loop::binary(op, x, y));
  }
  const Expr factor = loop::broadcast(e.first("f", ElementType::f32, 1.25), kLanes);
  e.output(loop::fma(exact, factor, a));
  e.output(loop::fma(factor, exact, b));
  e.output(loop::fma(exact, exact * factor, exact));
  const Expr quarters = exact * loop::float_constant(a.type(), 0.25);
  for (const Op op : {Op::floor, Op::ceil, Op::trunc, Op::round_even}) {
    e.output(loop::unary(op, quarters));
    e.output(loop::unary(op, loop::unary(Op::neg, quarters)));
  }
  return e.finish();
}

/// What passes between memory and such registers: small integers, widened and narrowed, clipped or
/// not; and sums of integer products with a scalar, which wrap.
Case small_integers_of_four() {
  constexpr int32_t kLanes = 4;
  Elementwise e("small_integers_of_four", kLanes);
  const Type words{Scalar::i32, kLanes}, reals{Scalar::f32, kLanes};
  const Expr word = e.input("w", interesting(ElementType::i32, kCount, 51));
  const Expr few = e.input("f", small_values(ElementType::i32, kCount, 70000, 52));
  const Expr factor = e.first("k", ElementType::i32, -123457);
  const auto clipped = [&](const Expr& x, int64_t low, int64_t high) {
    return loop::binary(Op::min, loop::binary(Op::max, x, loop::int_constant(words, low)),
                        loop::int_constant(words, high));
  };
  for (const ElementType element :
       {ElementType::i8, ElementType::u8, ElementType::i16, ElementType::u16}) {
    const Expr small = e.input(std::string(name_of(element)), interesting(element, kCount, 53));
    const Expr wide = loop::cast(words, small);
    e.output(wide + word);
    e.output(loop::cast(reals, small));
    e.output(loop::cast(small.type(), word));
    e.output(loop::cast(small.type(), clipped(few, -20, 100)));
    e.output(word + wide * loop::broadcast(factor, kLanes));
    e.output(loop::broadcast(factor, kLanes) * wide + few);
    const Expr byte = loop::cast({Scalar::u8, kLanes}, clipped(few, 0, 255));
    e.output(loop::cast(small.type(), loop::cast(words, byte) - loop::int_constant(words, 128)));
  }
  return e.finish();
}

/// Integers times negative powers of two, and multiples of these back: one instruction each on some
/// machines, whose operand counts the bits of the fraction. Steps of the loop are constants of the
/// same kind.
Case fractions_of_four() {
  constexpr int32_t kLanes = 4;
  Elementwise e("fractions_of_four", kLanes);
  const Type words{Scalar::i32, kLanes}, reals{Scalar::f32, kLanes};
  const Expr whole = e.input("w", small_values(ElementType::i32, kCount, 1 << 20, 61));
  const Expr more = e.input("u", small_values(ElementType::u32, kCount, 1 << 20, 62));
  const Expr bytes = e.input("b", interesting(ElementType::i8, kCount, 63));
  for (const int bits : {1, 2, 3, 4, 5, 8, 12, 16, 24, 32}) {
    const Expr unit = loop::float_constant(reals, std::ldexp(1.0, -bits));
    const Expr units = loop::float_constant(reals, std::ldexp(1.0, bits));
    const Expr fraction = loop::cast(reals, whole) * unit;
    e.output(fraction);
    e.output(loop::cast(reals, more) * unit);
    e.output(unit * loop::cast(reals, bytes));
    if (bits > 8) continue;  // the result is an i32
    e.output(loop::cast(words, loop::cast(reals, bytes) * units));
    e.output(loop::cast(words, fraction * units * loop::float_constant(reals, 2)));
  }
  return e.finish();
}

}  // namespace

std::vector<Case> register_cases() {
  return {registers_of_four(), fractions_of_four(), small_integers_of_four()};
}

std::vector<Case> nearest_cases(std::span<const int32_t> lanes) {
  std::vector<Case> cases;
  for (const int32_t n : lanes) cases.push_back(nearest(n));
  return cases;
}

std::vector<Case> arithmetic_cases() {
  std::vector<Case> cases;
  for (const ElementType element : kNumbers) {
    cases.push_back(arithmetic(element, 1));
    cases.push_back(arithmetic(element, lanes_of(element)));
  }
  for (const int32_t lanes : {1, 4}) cases.push_back(booleans(lanes));
  for (const int32_t lanes : {2, 4, 8, 16}) {
    for (const ElementType element : {ElementType::f32, ElementType::f64, ElementType::i8}) {
      if (lanes <= lanes_of(element)) cases.push_back(lane_bits(element, lanes));
    }
  }
  return cases;
}

std::vector<Case> pair_product_cases() {
  std::vector<Case> cases;
  for (const int32_t lanes : {1, 2, 4, 8, 16}) cases.push_back(pair_products(lanes));
  return cases;
}

std::vector<Case> byte_product_cases() {
  std::vector<Case> cases;
  for (const Op op : {Op::dot4, Op::dot4_signed}) {
    for (const int32_t lanes : {1, 2, 4, 8, 16}) cases.push_back(byte_products(op, lanes));
  }
  return cases;
}

std::vector<Case> byte_look_up_cases() {
  std::vector<Case> cases;
  for (const ElementType element : {ElementType::i8, ElementType::u8, ElementType::i16}) {
    for (const int32_t lanes : {1, 4, 8, 16, 32, 64}) {
      cases.push_back(byte_look_ups(element, lanes));
    }
  }
  return cases;
}

std::vector<Case> conversion_cases() {
  std::vector<Case> cases;
  for (const ElementType element : kNumbers) {
    for (const int32_t lanes : {1, 4}) {
      cases.push_back(casts(element, lanes));
      cases.push_back(selections(element, lanes));
    }
  }
  cases.push_back(bit_casts(1));
  cases.push_back(bit_casts(4));
  return cases;
}

namespace {

/// What is one instruction of a machine with a fused multiply-add.
Case instructions(ElementType element, int32_t lanes) {
  Elementwise e(fmt::format("round_{}_{}", name_of(element), lanes), lanes);
  const Expr a = e.input("a", interesting(element, kCount, 18));
  const Expr b = e.input("b", interesting(element, kCount, 19));
  for (const Op op : {Op::floor, Op::ceil, Op::round_even, Op::trunc}) {
    e.output(loop::unary(op, a));
    e.output(loop::unary(op, a + loop::float_constant(a.type(), 0.5)));
  }
  e.output(loop::unary(Op::sqrt, loop::unary(Op::abs, a)));
  e.output(loop::unary(Op::sqrt, b));
  e.output(loop::fma(a, b, a));
  for (const Op op : {Op::min, Op::max}) e.output(loop::binary(op, a, b));
  return e.finish();
}

}  // namespace

std::vector<Case> rounding_cases() {
  std::vector<Case> cases;
  for (const ElementType element : {ElementType::f32, ElementType::f64}) {
    for (const int32_t lanes : {1, 4, 8}) {
      if (lanes * byte_size(element) <= 32) cases.push_back(instructions(element, lanes));
    }
  }
  return cases;
}

std::vector<Case> widest_cases() {
  return {instructions(ElementType::f32, 16), instructions(ElementType::f64, 8),
          casts(ElementType::u8, 16),         casts(ElementType::i8, 16),
          casts(ElementType::i32, 16),        lane_bits(ElementType::f32, 16),
          lane_bits(ElementType::f64, 8)};
}

}  // namespace backcast::c_test
