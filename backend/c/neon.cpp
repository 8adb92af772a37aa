#include "backend/c/neon.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

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

struct Operation {
  Op op;
  const char* instruction;
  const char* symbol;  // in C
};
constexpr Operation kOperations[] = {
    {Op::add, "vadd", "+"}, {Op::sub, "vsub", "-"},  {Op::mul, "vmul", "*"},
    {Op::eq, "vceq", "=="}, {Op::ne, "~vceq", "!="}, {Op::lt, "vclt", "<"},
    {Op::le, "vcle", "<="}, {Op::gt, "vcgt", ">"},   {Op::ge, "vcge", ">="}};

const Operation* find_operation(Op op) {
  const auto* found = std::find_if(std::begin(kOperations), std::end(kOperations),
                                   [&](const Operation& o) { return o.op == op; });
  return found == std::end(kOperations) ? nullptr : found;
}

bool is_float_vector(const TargetInfo& target, Type type) {
  return target.architecture == Architecture::arm && target.vector_bits == kRegisterBits &&
         type.is_vector() && type.scalar == Scalar::f32;
}

const char* size_letter(Type type) { return type.lanes == kLanes ? "q" : ""; }

/// A function's body: `lines` for gcc, `otherwise` for others.
std::string for_gcc(const std::string& lines, const std::string& otherwise) {
  return fmt::format("#if defined(__ARM_NEON) && !defined(__clang__)\n{}#else\n{}#endif\n", lines,
                     otherwise);
}

std::string lanes_from(int32_t first, int32_t lanes) {
  std::string list;
  for (int32_t lane = 0; lane < lanes; ++lane) list += fmt::format(", {}", first + lane);
  return list;
}

/// A lane of `b` as instructions take it, the last two operands: of half a register.
std::string lane_of(Type type, int32_t lane) {
  const bool whole = 8 * byte_size(loop::element_of(type.scalar)) * type.lanes == kRegisterBits;
  if (!whole) return fmt::format(", b, {}", lane);
  const int32_t in_half = type.lanes / 2;
  return fmt::format(", vget_{}_{}(b), {}", lane < in_half ? "low" : "high", suffix_of(type.scalar),
                     lane % in_half);
}

/// Lines that return a op b, of type `result`, half by half.
std::string by_halves(Prelude& prelude, Op op, Type type, Type result) {
  const Type part = type.with_lanes(type.lanes / 2);
  const auto half = [&](const char* name, int32_t first) {
    const std::string list = lanes_from(first, part.lanes);
    const std::string value =
        neon_binary_text(prelude, op, part, {fmt::format("__builtin_shufflevector(a, a{})", list)},
                         {fmt::format("__builtin_shufflevector(b, b{})", list)})
            .text;
    return fmt::format("  const {} {} = {};\n", prelude.type(result.with_lanes(part.lanes)), name,
                       value);
  };
  return half("low", 0) + half("high", part.lanes) +
         fmt::format("  return __builtin_shufflevector(low, high{});\n", lanes_from(0, type.lanes));
}

}  // namespace

std::string neon_include() {
  return "#if defined(__ARM_NEON) && !defined(__clang__)\n#include <arm_neon.h>\n#endif\n";
}

bool is_neon_operation(const TargetInfo& target, Op op, Type type) {
  return is_float_vector(target, type) && find_operation(op) != nullptr;
}

Text neon_binary_text(Prelude& prelude, Op op, Type type, const Text& a, const Text& b) {
  const bool compares = loop::is_comparison(op);
  const Type result = {compares ? Scalar::i32 : Scalar::f32, type.lanes};
  const std::string name = fmt::format("{}_{}", loop::name_of(op), prelude.tag(type));
  prelude.helper(name, [&] {
    const Operation* operation = find_operation(op);
    const std::string c_type = prelude.type(result), operand = prelude.type(type);
    const std::string lines = type.lanes > kLanes
                                  ? by_halves(prelude, op, type, result)
                                  : fmt::format("  return ({}){}{}_f32(a, b);\n", c_type,
                                                operation->instruction, size_letter(type));
    const std::string plain = fmt::format("  return ({})(a {} b);\n", c_type, operation->symbol);
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
  const bool has_vectors =
      target.architecture == Architecture::arm && target.vector_bits == kRegisterBits;
  if (!has_vectors || product.op != Op::mul) return {};
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
  return prelude.target().architecture == Architecture::arm && type == shuffle.args[0].type() &&
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
