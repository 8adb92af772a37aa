// Expressions of the loop IR: immutable, shared trees. Semantics are exact, so that the
// interpreter, the C emitter and the LLVM emitter agree bit for bit:
//   * integers wrap (two's complement); `div`/`rem` truncate like C, x/0 = 0 and x%0 = x in the
//     interpreter only (kernels must not reach them); on `index`, floor_div and floor_mod have a
//     positive divisor;
//   * shifts by >= width do not occur; `shr` is arithmetic for signed types, logical for unsigned;
//   * floats follow IEEE, round to nearest; nothing is contracted: only `fma` is fused;
//   * min(a, b) = a < b ? a : b and max(a, b) = a > b ? a : b, so a NaN in either gives b;
//   * cast float→integer truncates; values out of range do not occur (clamp first);
//   * dot2(a, b) takes each i32 as two i16, low and high half: lo(a)*lo(b) + hi(a)*hi(b), which
//     wraps where all four are -2^15;
//   * dot4(a, b) takes each i32 as four bytes, a's unsigned, b's signed, and adds up their
//     products; dot4_signed takes both as signed;
//   * even_bytes(a) takes bytes 0 and 2 of an i32, odd_bytes(a) bytes 1 and 3, each sign-extended
//     into a half, the lower byte into the lower half;
//   * lane_bits(a) of booleans is an unsigned integer, the narrowest that holds a bit for every
//   lane,
//     whose bit i is lane i;
//   * nearest(a) of f32 is the nearest i32, ties to even; a lies within 2^22 of zero;
//   * trailing_zeros(a) counts the zero bits below the lowest one; of zero it does not occur;
//   * `index` is a signed integer of the target's pointer width (64 bits in the interpreter);
//   * f16 and bf16 can be loaded, stored and cast only.
// A type has n lanes; scalars have one. Operands of an operation have equal lanes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ir/graph/element_type.h"

namespace backcast::loop {

/// The element types of tensors, in the same order, and `index`.
enum class Scalar : uint8_t {
  boolean,
  i8,
  i16,
  i32,
  i64,
  u8,
  u16,
  u32,
  u64,
  f16,
  bf16,
  f32,
  f64,
  index
};
inline Scalar scalar_of(ElementType type) { return static_cast<Scalar>(type); }
inline ElementType element_of(Scalar s) { return static_cast<ElementType>(s); }  // not for index
std::string_view name_of(Scalar scalar);
bool is_float(Scalar scalar);
bool is_half(Scalar scalar);     // f16 or bf16
bool is_integer(Scalar scalar);  // index included, bool not

struct Type {
  Scalar scalar = Scalar::index;
  int32_t lanes = 1;

  bool is_vector() const { return lanes > 1; }
  Type with_lanes(int32_t n) const { return {scalar, n}; }
  std::string to_string() const;  // "f32", "f32x8"
  friend bool operator==(const Type&, const Type&) = default;
};

enum class ExprKind : uint8_t {
  constant,  // integer or floating value, splat over the lanes
  var,       // name: a loop variable, a let, an axis, an accumulator, a size symbol, a parameter
  access,    // name[args…]: multi-dimensional, in definitions only
  load,      // name[args[0]]: flat element index; lanes > 1 with a scalar index: contiguous; with
             // a vector index: gather. name may be a register/stack allocation.
  unary,     // op(args[0])
  binary,    // op(args[0], args[1])
  fma,       // args[0] * args[1] + args[2], one rounding
  select,    // args[0] ? args[1] : args[2], all evaluated
  if_then_else,  // the same, scalar condition, lazy: the branch not taken is not evaluated
  cast,          // to `type`
  bitcast,       // same bits, same size
  ramp,          // args[0] + lane * args[1]
  broadcast,     // scalar args[0] in every lane
  shuffle,       // lanes `indices` of concat(args…)
  reduce_lanes,  // op over the lanes of args[0], pairwise halves: (0..n/2) op (n/2..n), repeated
  call           // name(args…): a math function of the library (exp, tanh, …), per lane
};

enum class Op : uint8_t {
  none,
  // unary
  neg,
  abs,
  sqrt,
  floor,
  ceil,
  round_even,
  trunc,
  bit_not,
  is_nan,
  nearest,         // of f32 only, an i32
  even_bytes,      // of i32 only
  odd_bytes,       // of i32 only
  lane_bits,       // of vectors of bool only
  trailing_zeros,  // of u32 and u64 only
  // binary arithmetic
  add,
  sub,
  mul,
  div,
  rem,
  floor_div,
  floor_mod,
  min,
  max,
  bit_and,
  bit_or,
  bit_xor,
  shl,
  shr,
  mul_high,
  dot2,  // of i32 only
  dot4,  // likewise
  dot4_signed,
  // comparisons (bool result)
  eq,
  ne,
  lt,
  le,
  gt,
  ge
};
std::string_view name_of(Op op);
bool is_comparison(Op op);
/// What lane_bits of so many lanes, at most 64, is of.
Scalar lane_bits_scalar(int32_t lanes);
/// dot2, dot4 or dot4_signed.
bool is_word_product(Op op);

struct ExprNode;

/// A handle; empty handles occur only where stated.
class Expr {
 public:
  Expr() = default;
  explicit Expr(std::shared_ptr<const ExprNode> node) : node_(std::move(node)) {}
  Expr(int64_t index_constant);  // NOLINT: an index constant
  Expr(int index_constant) : Expr(static_cast<int64_t>(index_constant)) {}  // NOLINT

  explicit operator bool() const { return node_ != nullptr; }
  const ExprNode* operator->() const { return node_.get(); }
  const ExprNode& operator*() const { return *node_; }
  const ExprNode* get() const { return node_.get(); }
  const Type& type() const;

 private:
  std::shared_ptr<const ExprNode> node_;
};

struct ExprNode {
  ExprKind kind = ExprKind::constant;
  Type type;
  Op op = Op::none;
  int64_t int_value = 0;   // constant of an integer, bool or index type
  double float_value = 0;  // constant of a floating type
  std::string name;        // var, access, load, call
  std::vector<Expr> args;
  std::vector<int32_t> indices;  // shuffle
};

// ---- construction; each folds constants and the trivial identities of index arithmetic (x+0, x*1,
// x*0, constant+constant) so that generated index expressions stay readable. Float arithmetic is
// never rearranged.
Expr index_constant(int64_t value);
Expr int_constant(Type type, int64_t value);
Expr float_constant(Type type, double value);
Expr constant(Type type, double value);  // of whichever kind the type is
Expr var(const std::string& name, Type type = {});
Expr access(const std::string& buffer, Scalar element, std::vector<Expr> indices);
Expr load(Type type, const std::string& buffer, Expr index);
Expr unary(Op op, Expr a);
Expr binary(Op op, Expr a, Expr b);
Expr fma(Expr a, Expr b, Expr c);
Expr select(Expr condition, Expr a, Expr b);
Expr if_then_else(Expr condition, Expr a, Expr b);
Expr cast(Type type, Expr a);
Expr bitcast(Type type, Expr a);
Expr ramp(Expr base, Expr stride, int32_t lanes);
Expr broadcast(Expr a, int32_t lanes);
Expr shuffle(std::vector<Expr> args, std::vector<int32_t> indices);
Expr reduce_lanes(Op op, Expr a);
Expr call(const std::string& function, Type type, std::vector<Expr> args);

inline Expr operator+(Expr a, Expr b) { return binary(Op::add, std::move(a), std::move(b)); }
inline Expr operator-(Expr a, Expr b) { return binary(Op::sub, std::move(a), std::move(b)); }
inline Expr operator*(Expr a, Expr b) { return binary(Op::mul, std::move(a), std::move(b)); }
inline Expr operator<(Expr a, Expr b) { return binary(Op::lt, std::move(a), std::move(b)); }
inline Expr operator>=(Expr a, Expr b) { return binary(Op::ge, std::move(a), std::move(b)); }
inline Expr operator&&(Expr a, Expr b) { return binary(Op::bit_and, std::move(a), std::move(b)); }
Expr floor_div(Expr a, Expr b);
Expr floor_mod(Expr a, Expr b);
Expr min(Expr a, Expr b);
Expr max(Expr a, Expr b);

bool is_constant(const Expr& e, int64_t value);   // an integer-like constant of this value
bool as_constant(const Expr& e, int64_t& value);  // any integer-like constant
bool equal(const Expr& a, const Expr& b);         // structural

}  // namespace backcast::loop
