// The rules that types in expressions obey.
#include "ir/loop/type_rules.h"

#include <algorithm>
#include <bit>

#include "ir/graph/error.h"
#include "ir/loop/integer_fold.h"

namespace backcast::loop {
namespace {

/// The number of arguments of a kind; -1 for any.
int64_t arity_of(ExprKind kind) {
  switch (kind) {
    case ExprKind::constant:
    case ExprKind::var:
      return 0;
    case ExprKind::load:
    case ExprKind::unary:
    case ExprKind::cast:
    case ExprKind::bitcast:
    case ExprKind::broadcast:
    case ExprKind::reduce_lanes:
      return 1;
    case ExprKind::binary:
    case ExprKind::ramp:
      return 2;
    case ExprKind::fma:
    case ExprKind::select:
    case ExprKind::if_then_else:
      return 3;
    default:
      return -1;
  }
}

bool has_arithmetic(Scalar scalar) { return !is_half(scalar); }

bool has_unary(Op op, Scalar scalar) {
  if (!has_arithmetic(scalar)) return false;
  switch (op) {
    case Op::neg:
    case Op::abs:
      return scalar != Scalar::boolean;
    case Op::bit_not:
      return !is_float(scalar);
    case Op::sqrt:
    case Op::floor:
    case Op::ceil:
    case Op::round_even:
    case Op::trunc:
    case Op::is_nan:
      return is_float(scalar);
    case Op::nearest:
      return scalar == Scalar::f32;
    case Op::even_bytes:
    case Op::odd_bytes:
      return scalar == Scalar::i32;
    case Op::lane_bits:
      return scalar == Scalar::boolean;
    case Op::trailing_zeros:
      return scalar == Scalar::u32 || scalar == Scalar::u64;
    default:
      return false;
  }
}

bool has_binary(Op op, Scalar scalar) {
  if (!has_arithmetic(scalar) || op < Op::add) return false;
  if (is_comparison(op) || op == Op::min || op == Op::max) return true;
  if (is_word_product(op)) return scalar == Scalar::i32;
  if (op >= Op::bit_and && op <= Op::bit_xor) return !is_float(scalar);
  if (op <= Op::div) return scalar != Scalar::boolean;
  return is_integer(scalar);
}

bool uniform(const ExprNode& e) {
  return std::all_of(e.args.begin(), e.args.end(),
                     [&](const Expr& a) { return a.type() == e.args[0].type(); });
}

std::string shuffle_mistake(const ExprNode& e) {
  int64_t lanes = 0;
  for (const Expr& arg : e.args) {
    if (arg.type().scalar != e.args[0].type().scalar) return "shuffled values differ in type";
    lanes += arg.type().lanes;
  }
  if (e.args.empty() || e.indices.empty()) return "a shuffle of nothing";
  for (const int32_t lane : e.indices) {
    if (lane < 0 || lane >= lanes) return fmt::format("lane {} of {}", lane, lanes);
  }
  return "";
}

std::string memory_mistake(const ExprNode& e) {
  for (const Expr& index : e.args) {
    const Type type = index.type();
    if (type.scalar != Scalar::index) return "an index of type " + type.to_string();
    if (type.lanes != 1 && type.lanes != e.type.lanes) {
      return fmt::format("{} lanes from {} indices", e.type.lanes, type.lanes);
    }
  }
  return "";
}

std::string operand_mistake(const ExprNode& e) {
  const Type a = e.args.empty() ? Type{} : e.args[0].type();
  const std::string first = a.to_string();
  switch (e.kind) {
    case ExprKind::unary: {
      const bool counts = e.op != Op::lane_bits || (a.is_vector() && a.lanes <= 64);
      return counts && has_unary(e.op, a.scalar) ? ""
                                                 : fmt::format("{} of {}", name_of(e.op), first);
    }
    case ExprKind::binary:
      if (!uniform(e)) {
        return fmt::format("{} of {} and {}", name_of(e.op), first, e.args[1].type().to_string());
      }
      return has_binary(e.op, a.scalar) ? "" : fmt::format("{} of {}", name_of(e.op), first);
    case ExprKind::fma:
      return uniform(e) && is_float(a.scalar) && has_arithmetic(a.scalar) ? "" : "fma of " + first;
    case ExprKind::select:
    case ExprKind::if_then_else: {
      const int32_t lanes = e.kind == ExprKind::select ? e.args[1].type().lanes : 1;
      if (a != Type{Scalar::boolean, lanes}) return "a condition of type " + first;
      return e.args[1].type() == e.args[2].type() ? "" : "branches of different types";
    }
    case ExprKind::cast:
      return e.type.lanes == a.lanes ? "" : "a cast changes the lanes of " + first;
    case ExprKind::bitcast: {
      const int64_t bits = int64_t{bit_width(e.type.scalar)} * e.type.lanes;
      return bits == int64_t{bit_width(a.scalar)} * a.lanes ? "" : "a bitcast resizes " + first;
    }
    case ExprKind::ramp:
      return uniform(e) && a.lanes == 1 && is_integer(a.scalar) && e.type.lanes > 1
                 ? ""
                 : "a ramp from " + first;
    case ExprKind::broadcast:
      return a.lanes == 1 && e.type.lanes > 1 ? "" : "a broadcast of " + first;
    case ExprKind::reduce_lanes: {
      const bool ok = has_binary(e.op, a.scalar) && !is_comparison(e.op) && a.is_vector() &&
                      std::has_single_bit(static_cast<uint32_t>(a.lanes));
      return ok ? "" : fmt::format("{} over the lanes of {}", name_of(e.op), first);
    }
    case ExprKind::shuffle:
      return shuffle_mistake(e);
    case ExprKind::load:
    case ExprKind::access:
      return memory_mistake(e);
    case ExprKind::call:
      for (const Expr& arg : e.args) {
        if (arg.type().lanes != e.type.lanes) return "an argument of " + arg.type().to_string();
      }
      return "";
    default:
      return "";
  }
}

}  // namespace

Type result_type(const ExprNode& e) {
  if (e.args.empty()) return e.type;
  const Type a = e.args[0].type();
  switch (e.kind) {
    case ExprKind::unary:
      if (e.op == Op::lane_bits) return {lane_bits_scalar(a.lanes), 1};
      if (e.op == Op::nearest) return {Scalar::i32, a.lanes};
      return e.op == Op::is_nan ? Type{Scalar::boolean, a.lanes} : a;
    case ExprKind::binary:
      return is_comparison(e.op) ? Type{Scalar::boolean, a.lanes} : a;
    case ExprKind::fma:
      return a;
    case ExprKind::select:
    case ExprKind::if_then_else:
      return e.args.size() > 1 ? e.args[1].type() : e.type;
    case ExprKind::ramp:
    case ExprKind::broadcast:
      return a.with_lanes(e.type.lanes);
    case ExprKind::shuffle:
      return {a.scalar, static_cast<int32_t>(e.indices.size())};
    case ExprKind::reduce_lanes:
      return a.with_lanes(1);
    default:
      return e.type;
  }
}

std::string type_mistake(const ExprNode& e) {
  const int64_t arity = arity_of(e.kind);
  if (arity >= 0 && static_cast<int64_t>(e.args.size()) != arity) {
    return fmt::format("{} operands", e.args.size());
  }
  for (const Expr& arg : e.args) {
    if (!arg) return "an operand is missing";
  }
  if (e.type.lanes < 1) return "no lanes";
  const std::string mistake = operand_mistake(e);
  if (!mistake.empty()) return mistake;
  const Type expected = result_type(e);
  return expected == e.type
             ? ""
             : "the result is " + expected.to_string() + ", not " + e.type.to_string();
}

}  // namespace backcast::loop
