// Target legalisation, the last thing before memory is planned. Casts to a narrower type and back
// that change nothing are left out.
#include <fmt/format.h>

#include "ir/graph/error.h"
#include "ir/loop/bounds.h"
#include "ir/loop/math_library.h"
#include "ir/loop/visit.h"
#include "passes/schedule/schedule.h"

namespace backcast {
namespace {

using loop::Expr;
using loop::ExprKind;
using loop::Op;
using loop::Scalar;
using loop::Stmt;
using loop::Type;

Expr call(const std::string& function, Type type, Expr arg) {
  return loop::call(function, type, {std::move(arg)});
}

class Legalizer {
 public:
  explicit Legalizer(const TargetInfo& target) : target_(target) {}

  /// A function of the math library with what the target lacks replaced.
  loop::MathFunction run(loop::MathFunction function) {
    for (auto& [name, value] : function.lets) value = legal(value);
    function.result = legal(function.result);
    return function;
  }

  Stmt run(const Stmt& stmt) {
    return loop::rewrite(
        stmt, [&](const Expr& e) { return legal(e); },
        [&](const Stmt& s) -> Stmt {
          if (s->kind != loop::StmtKind::alloc || !is_pattern(s->type.scalar)) return s;
          return loop::alloc(s->name, bits_of(s->type), s->exprs[0], s->memory);
        });
  }

  /// The type as the target has it.
  Type bits_of(Type type) const {
    return is_pattern(type.scalar) ? Type{Scalar::u16, type.lanes} : type;
  }

 private:
  /// Half floats that are bit patterns in what the target runs.
  bool is_pattern(Scalar s) const {
    return s == Scalar::bf16 || (s == Scalar::f16 && !target_.converts_halves);
  }

  /// Half floats without instructions are u16 bit patterns in what this returns.
  Expr legal(const Expr& e) {
    if (e->kind == ExprKind::constant && is_pattern(e.type().scalar)) return half_constant(e);
    if (e->args.empty()) {
      return is_pattern(e.type().scalar) ? loop::var(e->name, bits_of(e.type())) : e;
    }
    std::vector<Expr> args;
    for (const Expr& arg : e->args) args.push_back(legal(arg));
    if (e->kind == ExprKind::cast) return legal_cast(e, args[0]);
    if (e->kind == ExprKind::unary) {
      if (Expr replaced = legal_unary(*e, args[0])) return replaced;
    }
    loop::ExprNode copy = *e;
    copy.args = std::move(args);
    copy.type = bits_of(e.type());
    return Expr(std::make_shared<loop::ExprNode>(std::move(copy)));
  }

  Expr half_constant(const Expr& e) const {
    uint16_t bits = e.type().scalar == Scalar::f16
                        ? f16_from_f64(e->float_value)
                        : bf16_from_f32(static_cast<float>(e->float_value));
    return loop::int_constant(bits_of(e.type()), bits);
  }

  /// `value` is the legalised operand of cast `e`.
  Expr legal_cast(const Expr& e, Expr value) const {
    Scalar from = e->args[0].type().scalar, to = e.type().scalar;
    if (from == to) return value;
    const auto f32 = [&](const Expr& x) { return loop::cast({Scalar::f32, x.type().lanes}, x); };
    if (loop::is_half(from)) {
      value = is_pattern(from) ? call(fmt::format("f32_from_{}", loop::name_of(from)),
                                      {Scalar::f32, e.type().lanes}, value)
                               : f32(value);
      from = Scalar::f32;
    }
    if (loop::is_half(to)) {
      // One rounding, not two.
      const bool wide = from == Scalar::f64;
      if (!wide && from != Scalar::f32) value = f32(value);
      if (!wide && !is_pattern(to)) return loop::cast(e.type(), value);
      const std::string function =
          fmt::format("{}_from_{}", loop::name_of(to), wide ? "f64" : "f32");
      const Expr bits = call(function, {Scalar::u16, e.type().lanes}, value);
      return is_pattern(to) ? bits : loop::bitcast(e.type(), bits);
    }
    return from == to ? value : loop::cast(e.type(), before_detour(value));
  }

  /// What was made narrower although it fits; otherwise the value. Not every C compiler sees it.
  static Expr before_detour(const Expr& value) {
    if (value->kind != ExprKind::cast || !loop::Knowledge().keeps_values(value)) return value;
    const auto bytes = [](const Expr& e) { return byte_size(loop::element_of(e.type().scalar)); };
    const Expr& wider = value->args[0];
    const bool narrows = wider.type().scalar != Scalar::index && bytes(wider) > bytes(value);
    return narrows ? wider : value;
  }

  /// The nearest integer ends up in the last bits of a float of 1.5 · 2^23.
  static Expr nearest_by_addition(const Type& integer, const Expr& x) {
    constexpr double kShift = 12582912;
    constexpr int64_t kShiftBits = 0x4b400000;
    return loop::bitcast(integer, x + loop::float_constant(x.type(), kShift)) -
           loop::int_constant(integer, kShiftBits);
  }

  /// The library's version of an instruction that the target lacks; empty when it has it.
  Expr legal_unary(const loop::ExprNode& e, const Expr& arg) const {
    Scalar s = e.type.scalar;
    if (e.op == Op::nearest) {
      return target_.converts_to_nearest ? Expr() : nearest_by_addition(e.type, arg);
    }
    if (!loop::is_float(s)) return {};
    bool hardware = s == Scalar::f64 ? target_.has_f64 : target_.has_f32;
    bool rounding =
        e.op == Op::floor || e.op == Op::ceil || e.op == Op::round_even || e.op == Op::trunc;
    bool lacks = (rounding && !(target_.has_rounding && hardware)) ||
                 (e.op == Op::sqrt && !(target_.has_sqrt && hardware));
    if (!lacks) return {};
    return call(fmt::format("{}.{}", loop::name_of(e.op), loop::name_of(s)), e.type, arg);
  }

  const TargetInfo& target_;
};

/// The math library as the target computes it best: fused multiply-adds only in types with hardware
/// and where one takes less time than a multiplication and an addition.
std::map<std::string, loop::MathFunction> legal_library(const TargetInfo& target) {
  std::map<std::string, loop::MathFunction> library;
  for (const auto& [name, plain] : loop::math_library(false)) {
    bool wide = name.find("f64") != std::string::npos;
    bool fused = target.uses_fma() && (wide ? target.has_f64 : target.has_f32);
    const loop::MathFunction& chosen = fused ? loop::math_library(true).at(name) : plain;
    library[name] = Legalizer(target).run(chosen);
  }
  return library;
}

}  // namespace

loop::Program legalize(const loop::Program& program, const TargetInfo& target) {
  loop::Program result = program;
  Legalizer legalizer(target);
  for (auto& [name, kernel] : result.kernels) {
    kernel.body = legalizer.run(kernel.body);
    for (loop::BufferParam& param : kernel.buffers) {
      param.element = legalizer.bits_of({param.element}).scalar;
    }
  }
  result.functions = loop::functions_for(result.kernels, legal_library(target));
  return result;
}

}  // namespace backcast
