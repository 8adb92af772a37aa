#include "backend/c/mve.h"

#include <fmt/format.h>

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

/// Statements that return a value of type `result`: `chosen` where a op b and `other` elsewhere.
/// The conditions lt and le hold for NaN, so the operands change places.
std::string chosen_lanes(Prelude& prelude, Op op, Type type, Type result, const std::string& chosen,
                         const std::string& other) {
  const char* letter = type.scalar == Scalar::f32 ? "f" : op == Op::eq || op == Op::ne ? "i" : "s";
  const bool swaps = op == Op::lt || op == Op::le;
  return fmt::format(
      "  {} r;\n  __asm__(\"vcmp.{}32 {}, %q{}, %q{}\\n\\tvpsel %q0, %q3, %q4\"\n"
      "          : \"=w\"(r) : \"w\"(a), \"w\"(b), \"w\"({}), \"w\"({}) : \"p0\");\n  return r;\n",
      prelude.type(result), letter, condition_of(op), swaps ? 2 : 1, swaps ? 1 : 2, chosen, other);
}

/// Can registers of this type be compared so?
bool compares(const Prelude& prelude, Op op, Type type) {
  const bool is_known = type.scalar == Scalar::f32 || type.scalar == Scalar::i32;
  return is_register(prelude, type) && is_known && condition_of(op) != nullptr;
}

}  // namespace

std::string with_mve(const Prelude& prelude, Type type, const std::string& instruction,
                     const std::string& otherwise) {
  if (instruction.empty() || !is_register(prelude, type)) return otherwise;
  return "#if defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & 2) && !defined(__clang__)\n" +
         instruction + "#else\n" + otherwise + "#endif\n";
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

}  // namespace backcast::c_backend
