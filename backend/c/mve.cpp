#include "backend/c/mve.h"

#include <fmt/format.h>

#include "ir/loop/integer_fold.h"

namespace backcast::c_backend {

using loop::Op;
using loop::Scalar;
using loop::Type;

namespace {

constexpr int kRegisterBits = 128;

const char* condition_of(Op op) {
  switch (op) {
    case Op::eq:
      return "eq";
    case Op::ne:
      return "ne";
    case Op::lt:
    case Op::gt:
      return "gt";
    case Op::le:
    case Op::ge:
      return "ge";
    default:
      return nullptr;
  }
}

bool is_register(const Prelude& prelude, Type type) {
  const TargetInfo& target = prelude.target();
  return target.architecture == Architecture::thumb && target.vector_bits == kRegisterBits &&
         prelude.bits(type.scalar) * type.lanes == kRegisterBits;
}

/// At the end of assembly: gcc 12 takes constants in MVE registers for half as long as they are and
/// may put a short branch out of range; a line without anything counts as four bytes.
constexpr const char* kSpareLine = "\\n";

char width_letter(const Prelude& prelude, Scalar small) {
  return prelude.bits(small) == 8 ? 'b' : 'h';
}

/// The type of pointers that gcc's builtins take.
const char* element_of_builtin(const Prelude& prelude, Scalar small) {
  return prelude.bits(small) == 8 ? "__builtin_neon_qi" : "__builtin_neon_hi";
}

/// Statements that return a value of type `result`: `chosen` where a op b and `other` elsewhere.
/// The conditions lt and le hold for NaN, so the operands change places.
std::string chosen_lanes(Prelude& prelude, Op op, Type type, Type result, const std::string& chosen,
                         const std::string& other) {
  const char* letter = type.scalar == Scalar::f32 ? "f" : op == Op::eq || op == Op::ne ? "i" : "s";
  const bool swaps = op == Op::lt || op == Op::le;
  return fmt::format(
      "  {} r;\n  __asm__(\"vcmp.{}32 {}, %q{}, %q{}\\n\\tvpsel %q0, %q3, %q4{}\"\n"
      "          : \"=w\"(r) : \"w\"(a), \"w\"(b), \"w\"({}), \"w\"({}) : \"p0\");\n  return r;\n",
      prelude.type(result), letter, condition_of(op), swaps ? 2 : 1, swaps ? 1 : 2, kSpareLine,
      chosen, other);
}

/// Can registers of this type be compared so?
bool compares(const Prelude& prelude, Op op, Type type) {
  const bool is_known = type.scalar == Scalar::f32 || type.scalar == Scalar::i32;
  return is_register(prelude, type) && is_known && condition_of(op) != nullptr;
}

}  // namespace

std::string with_mve(const Prelude& prelude, Type type, const std::string& instruction,
                     const std::string& otherwise, bool by_clang) {
  if (instruction.empty() || !is_register(prelude, type)) return otherwise;
  return fmt::format(
      "#if defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & 2){}\n{}#else\n{}#endif\n",
      by_clang ? "" : " && !defined(__clang__)", instruction, otherwise);
}

std::string mve_choice(Prelude& prelude, Op op, Type type) {
  return compares(prelude, op, type) ? chosen_lanes(prelude, op, type, type, "a", "b") : "";
}

std::string mve_comparison(Prelude& prelude, Op op, Type type) {
  if (!compares(prelude, op, type)) return {};
  const Type mask{Scalar::i32, type.lanes};
  const std::string all = broadcast_text(prelude, mask, {"-1"}).text;
  return chosen_lanes(prelude, op, type, mask, all, broadcast_text(prelude, mask, {"0"}).text);
}

std::string mve_conversion(Prelude& prelude, Scalar from, Type to) {
  const Type source{from, to.lanes};
  const auto has_32_bits = [&](Type type) { return is_register(prelude, type); };
  const auto lines = [&](const char* code, const std::string& instruction) {
    return fmt::format("  {} r;\n  __asm__(\"{}{}\" {});\n  return r;\n", prelude.type(to),
                       instruction, kSpareLine, code);
  };
  constexpr const char* kRegisters = ": \"=w\"(r) : \"w\"(a)";
  if (has_32_bits(to) && has_32_bits(source)) {
    if (loop::is_float(from) == loop::is_float(to.scalar)) return {};
    const auto letter = [](Scalar s) {
      return loop::is_float(s) ? 'f' : loop::is_signed(s) ? 's' : 'u';
    };
    return lines(kRegisters,
                 fmt::format("vcvt.{}32.{}32 %q0, %q1", letter(to.scalar), letter(from)));
  }
  // What has no register of its own passes through memory, which widens and narrows; its address
  // lies in one of the lower registers.
  if (mve_converts_in_memory(prelude, from, to)) {
    return lines(": \"=w\"(r) : \"l\"(&a), \"m\"(a)",
                 fmt::format("vldr{}.{}32 %q0, [%1]", width_letter(prelude, from),
                             loop::is_signed(from) ? 's' : 'u'));
  }
  if (mve_converts_in_memory(prelude, to.scalar, source)) {
    return lines(": \"=m\"(r) : \"w\"(a), \"l\"(&r)",
                 fmt::format("vstr{}.32 %q1, [%2]", width_letter(prelude, to.scalar)));
  }
  return {};
}

bool mve_converts_in_memory(const Prelude& prelude, Scalar small, Type word) {
  return word.scalar == Scalar::i32 && is_register(prelude, word) && loop::is_integer(small) &&
         prelude.bits(small) <= 16;
}

std::string mve_widening_load(Prelude& prelude, Scalar from, Type to) {
  return fmt::format("  return ({})__builtin_mve_vldr{}q_{}v4si(({} *)(uintptr_t)p);\n",
                     prelude.type(to), width_letter(prelude, from),
                     loop::is_signed(from) ? 's' : 'u', element_of_builtin(prelude, from));
}

std::string mve_narrowing_store(const Prelude& prelude, Scalar to) {
  return fmt::format("  __builtin_mve_vstr{}q_sv4si(({} *)p, (__simd128_int32_t)v);\n",
                     width_letter(prelude, to), element_of_builtin(prelude, to));
}

}  // namespace backcast::c_backend
