#include "backend/c/neon.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "backend/c/vector_parts.h"

namespace backcast::c_backend {

using loop::Op;
using loop::Scalar;
using loop::Type;

namespace {

constexpr int kRegisterBits = 128;
constexpr int32_t kLanes = 4;  // of 32 bits

/// What the names of instructions on such elements end in; empty: none of these.
const char* suffix_of(Scalar scalar) {
  switch (scalar) {
    case Scalar::f32:
      return "f32";
    case Scalar::i32:
      return "s32";
    case Scalar::i16:
      return "s16";
    default:
      return "";
  }
}

/// Empty where there is none.
const char* instruction_of(Op op) {
  switch (op) {
    case Op::add:
      return "vadd";
    case Op::sub:
      return "vsub";
    case Op::mul:
      return "vmul";
    case Op::eq:
      return "vceq";
    case Op::ne:
      return "~vceq";
    case Op::lt:
      return "vclt";
    case Op::le:
      return "vcle";
    case Op::gt:
      return "vcgt";
    case Op::ge:
      return "vcge";
    default:
      return "";
  }
}

bool has_neon(const TargetInfo& target) {
  return target.architecture == Architecture::arm && target.vector_bits == kRegisterBits;
}

bool is_float_vector(const TargetInfo& target, Type type) {
  return has_neon(target) && type.is_vector() && type.scalar == Scalar::f32;
}

const char* size_letter(Type type) { return type.lanes == kLanes ? "q" : ""; }

/// A function's body: `lines` for gcc, `otherwise` for others.
std::string for_gcc(const std::string& lines, const std::string& otherwise) {
  return fmt::format("#if defined(__ARM_NEON) && !defined(__clang__)\n{}#else\n{}#endif\n", lines,
                     otherwise);
}

/// A lane of `b` as instructions take it, the last two operands: of half a register.
std::string lane_of(Type type, int32_t lane) {
  const bool whole = 8 * byte_size(loop::element_of(type.scalar)) * type.lanes == kRegisterBits;
  if (!whole) return fmt::format(", b, {}", lane);
  const int32_t in_half = type.lanes / 2;
  return fmt::format(", vget_{}_{}(b), {}", lane < in_half ? "low" : "high", suffix_of(type.scalar),
                     lane % in_half);
}

}  // namespace

std::string neon_include() {
  return "#if defined(__ARM_NEON) && !defined(__clang__)\n#include <arm_neon.h>\n#endif\n";
}

bool is_neon_operation(const TargetInfo& target, Op op, Type type) {
  return is_float_vector(target, type) && *instruction_of(op) != 0;
}

Text neon_binary_text(Prelude& prelude, Op op, Type type, const Text& a, const Text& b) {
  const bool compares = loop::is_comparison(op);
  const Type result = {compares ? Scalar::i32 : Scalar::f32, type.lanes};
  const std::string name = fmt::format("{}_{}", loop::name_of(op), prelude.tag(type));
  const auto on_parts = [&](Prelude& p, Type part, const std::vector<std::string>& operands) {
    return neon_binary_text(p, op, part, {operands[0]}, {operands[1]}).text;
  };
  prelude.helper(name, [&] {
    const std::string c_type = prelude.type(result), operand = prelude.type(type);
    const std::string lines = type.lanes > kLanes
                                  ? by_registers(prelude, type, result, {"a", "b"}, on_parts)
                                  : fmt::format("  return ({}){}{}_f32(a, b);\n", c_type,
                                                instruction_of(op), size_letter(type));
    const std::string plain = fmt::format("  return ({})(a {} b);\n", c_type, symbol_of(op));
    return inline_function(c_type, name, fmt::format("{0} a, {0} b", operand)) + " {\n" +
           for_gcc(lines, plain) + "}\n";
  });
  Text text = {fmt::format("{}({}, {})", name, a.text, b.text)};
  if (compares) text.mask_bits = 32;
  return text;
}

Text neon_negated_text(Prelude& prelude, Type type, const Text& a) {
  if (!is_float_vector(prelude.target(), type) || type.lanes > kLanes) return {};
  const std::string name = "neg_" + prelude.tag(type);
  prelude.helper(name, [&] {
    const std::string c_type = prelude.type(type);
    return inline_function(c_type, name, c_type + " a") + " {\n" +
           for_gcc(fmt::format("  return ({})vneg{}_f32(a);\n", c_type, size_letter(type)),
                   "  return -a;\n") +
           "}\n";
  });
  return {fmt::format("{}({})", name, a.text)};
}

std::vector<loop::Expr> neon_factors(const TargetInfo& target, const loop::ExprNode& product) {
  if (!has_neon(target) || product.op != Op::mul) return {};
  const Type type = product.type;
  if (type.scalar == Scalar::f32 && type.is_vector() && type.lanes <= kLanes) return product.args;
  if (type != Type{Scalar::i32, kLanes}) return {};
  std::vector<loop::Expr> halves;
  for (const loop::Expr& factor : product.args) {
    if (factor->kind != loop::ExprKind::cast) return {};
    if (factor->args[0].type() != Type{Scalar::i16, kLanes}) return {};
    halves.push_back(factor->args[0]);
  }
  return halves;
}

Text neon_product_sum_text(Prelude& prelude, Type factor, const Text& a, const Text& b,
                           const Text& sum, std::optional<int32_t> lane) {
  const bool widens = factor.scalar == Scalar::i16;
  const Type type = {widens ? Scalar::i32 : Scalar::f32, factor.lanes};
  const std::string at = lane ? fmt::format("{}", *lane) : "";
  const std::string name = fmt::format("mla{}_{}", at, prelude.tag(factor));
  prelude.helper(name, [&] {
    const std::string c_type = prelude.type(type), factor_type = prelude.type(factor);
    const Text other = lane ? repeated_neon_lane_text(prelude, factor, {"b"}, *lane) : Text{"b"};
    const std::string instruction =
        fmt::format("vml{}{}_{}{}", widens ? "al" : "a", widens ? "" : size_letter(type),
                    lane ? "lane_" : "", suffix_of(factor.scalar));
    const std::string lane_text = lane ? lane_of(factor, *lane) : ", b";
    const std::string plain =
        widens ? fmt::format(
                     "  const {0} p = __builtin_convertvector(a, {0}) * "
                     "__builtin_convertvector({1}, {0});\n  return ({0})(({2})sum + ({2})p);\n",
                     c_type, other.text, prelude.unsigned_type(type))
               : fmt::format("  return sum + a * {};\n", other.text);
    return inline_function(c_type, name,
                           fmt::format("{0} a, {0} b, {1} sum", factor_type, c_type)) +
           " {\n" +
           for_gcc(fmt::format("  return ({}){}(sum, a{});\n", c_type, instruction, lane_text),
                   plain) +
           "}\n";
  });
  return {fmt::format("{}({}, {}, {})", name, a.text, b.text, sum.text)};
}

bool repeats_neon_lane(const Prelude& prelude, const loop::ExprNode& shuffle) {
  if (shuffle.kind != loop::ExprKind::shuffle || shuffle.args.size() != 1) return false;
  const Type type = shuffle.type;
  const int bits = prelude.bits(type.scalar) * type.lanes;
  return has_neon(prelude.target()) && type == shuffle.args[0].type() &&
         (bits == kRegisterBits || bits == kRegisterBits / 2) && *suffix_of(type.scalar) != 0 &&
         std::equal(shuffle.indices.begin() + 1, shuffle.indices.end(), shuffle.indices.begin());
}

Text repeated_neon_lane_text(Prelude& prelude, Type type, const Text& a, int32_t lane) {
  const std::string name = fmt::format("repeat{}_{}", lane, prelude.tag(type));
  prelude.helper(name, [&] {
    const std::string c_type = prelude.type(type);
    const bool whole = prelude.bits(type.scalar) * type.lanes == kRegisterBits;
    const std::vector<int32_t> lanes(static_cast<size_t>(type.lanes), lane);
    return inline_function(c_type, name, c_type + " b") + " {\n" +
           for_gcc(fmt::format("  return ({})vdup{}_lane_{}({});\n", c_type, whole ? "q" : "",
                               suffix_of(type.scalar), lane_of(type, lane).substr(2)),
                   fmt::format("  return __builtin_shufflevector(b, b, {});\n",
                               fmt::join(lanes, ", "))) +
           "}\n";
  });
  return {fmt::format("{}({})", name, a.text)};
}

}  // namespace backcast::c_backend
