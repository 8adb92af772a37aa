// dot2, even_bytes and odd_bytes (operations.h): the instructions of x86 and of Arm with DSP where
// the compiler's flags allow them, shifts and products elsewhere.
#include "backend/c/operations.h"
#include "backend/c/vector_parts.h"
#include "ir/graph/error.h"

namespace backcast::c_backend {

using loop::Op;
using loop::Scalar;
using loop::Type;

namespace {

bool is_arm(const TargetInfo& target) {
  return target.architecture == Architecture::thumb || target.architecture == Architecture::arm;
}

/// Products of halves fit; their sum may not.
std::string generic_body(Prelude& prelude, Type type) {
  const std::string wrapping = prelude.unsigned_type(type), plain = prelude.type(type);
  if (!type.is_vector()) {
    return "  const int32_t low = (int16_t)a * (int16_t)b, high = (a >> 16) * (b >> 16);\n"
           "  return (int32_t)((uint32_t)low + (uint32_t)high);\n";
  }
  return fmt::format(
      "  const {1} low = (({1})(({0})a << 16) >> 16) * (({1})(({0})b << 16) >> 16);\n"
      "  const {1} high = (a >> 16) * (b >> 16);\n"
      "  return ({1})(({0})low + ({0})high);\n",
      wrapping, plain);
}

std::string product_of(Prelude& prelude, Type type, const std::string& a, const std::string& b) {
  return pair_product_text(prelude, type, {a}, {b}).text;
}

std::string product_on(Prelude& prelude, Type type, const std::vector<std::string>& operands) {
  return product_of(prelude, type, operands[0], operands[1]);
}

std::string x86_body(Prelude& prelude, Type type) {
  const int32_t lanes = type.lanes;
  if (lanes < 4 || lanes > prelude.target().vector_lanes(4)) {
    return by_registers(prelude, type, type, {"a", "b"}, product_on);
  }
  const std::string pairs = prelude.type({Scalar::i16, 2 * lanes});
  const std::string operands = fmt::format("({0})a, ({0})b", pairs);
  std::string product =
      fmt::format("  return __builtin_ia32_pmaddwd{}({});\n", 32 * lanes, operands);
  if (lanes == 16) {
    // gcc's has a mask, of which all bits are set.
    product = fmt::format("#if defined(__clang__)\n{}#else\n  return {}({}, a, 0xffff);\n#endif\n",
                          product, "__builtin_ia32_pmaddwd512_mask", operands);
  }
  return fmt::format("#if defined({})\n{}#else\n{}#endif\n",
                     lanes == 4   ? "__SSE2__"
                     : lanes == 8 ? "__AVX2__"
                                  : "__AVX512BW__",
                     product, generic_body(prelude, type));
}

std::string wasm_body(Prelude& prelude, Type type) {
  if (type.lanes != 4) return by_registers(prelude, type, type, {"a", "b"}, product_on);
  const std::string pairs = prelude.type({Scalar::i16, 8});
  return fmt::format(
      "#if defined(__wasm_simd128__)\n"
      "  return __builtin_wasm_dot_s_i32x4_i16x8(({0})a, ({0})b);\n#else\n{1}#endif\n",
      pairs, generic_body(prelude, type));
}

/// `lines` where the compiler has Arm's instructions on pairs, else `otherwise`.
std::string arm_body(Prelude& prelude, std::string_view lines, const std::string& otherwise) {
  prelude.helper("arm_acle", [] {
    return std::string("#if defined(__ARM_FEATURE_SIMD32)\n#include <arm_acle.h>\n#endif\n");
  });
  return fmt::format("#if defined(__ARM_FEATURE_SIMD32)\n{}#else\n{}#endif\n", lines, otherwise);
}

/// Bytes 1 and 3 of a word, or of the word with its even bytes in their place.
std::string shifted_bytes(Prelude& prelude, Op op, Type type) {
  const std::string wrapping = prelude.unsigned_type(type), plain = prelude.type(type);
  return fmt::format(
      "  const {0} w = ({0})a{2};\n"
      "  const {0} low = ({0})(({1})(w << 16) >> 24), high = ({0})(({1})w >> 8);\n"
      "  return ({1})((low & 0xffffu) | (high & 0xffff0000u));\n",
      wrapping, plain, op == Op::even_bytes ? " << 8" : "");
}

/// gcc 12 does not find the rotation in the instruction.
std::string arm_bytes(Op op) {
  if (op == Op::even_bytes) return "  return __sxtb16(a);\n";
  return "#if defined(__clang__) || !defined(BC_GNU_C)\n"
         "  return __sxtb16((int32_t)((uint32_t)a >> 8 | (uint32_t)a << 24));\n#else\n"
         "  int32_t r;\n  __asm__(\"sxtb16 %0, %1, ror #8\" : \"=r\"(r) : \"r\"(a));\n"
         "  return r;\n#endif\n";
}

std::string lanewise_body(Prelude& prelude, Type type) {
  return fmt::format(
      "  {} r = a;\n  for (int lane = 0; lane < {}; ++lane) r[lane] = {};\n  return r;\n",
      prelude.type(type), type.lanes,
      product_of(prelude, type.with_lanes(1), "a[lane]", "b[lane]"));
}

std::string body(Prelude& prelude, Type type) {
  const TargetInfo& target = prelude.target();
  if (!target.pair_products) return generic_body(prelude, type);
  const bool wasm = target.architecture == Architecture::wasm32;
  if (wasm || target.architecture == Architecture::x86_64) {
    if (!type.is_vector()) return generic_body(prelude, type);
    return wasm ? wasm_body(prelude, type) : x86_body(prelude, type);
  }
  BC_CHECK(is_arm(target), "{} has pair products of a kind unknown here", target.name);
  if (type.is_vector()) return lanewise_body(prelude, type);
  return arm_body(prelude, "  return __smuad(a, b);\n", generic_body(prelude, type));
}

}  // namespace

Text pair_product_text(Prelude& prelude, Type type, const Text& a, const Text& b) {
  const std::string name = "dot2_" + prelude.tag(type);
  prelude.helper(name, [&] {
    const std::string c_type = prelude.type(type);
    return inline_function(c_type, name, fmt::format("{0} a, {0} b", c_type)) + " {\n" +
           body(prelude, type) + "}\n";
  });
  return {fmt::format("{}({}, {})", name, a.text, b.text)};
}

Text byte_pair_text(Prelude& prelude, Op op, Type type, const Text& a) {
  const std::string name = fmt::format("{}_{}", loop::name_of(op), prelude.tag(type));
  prelude.helper(name, [&] {
    const TargetInfo& target = prelude.target();
    const bool arm = target.pair_products && is_arm(target) && !type.is_vector();
    const std::string c_type = prelude.type(type), shifts = shifted_bytes(prelude, op, type);
    return inline_function(c_type, name, c_type + " a") + " {\n" +
           (arm ? arm_body(prelude, arm_bytes(op), shifts) : shifts) + "}\n";
  });
  return {fmt::format("{}({})", name, a.text)};
}

bool adds_products(const TargetInfo& target, Op op, Type type) {
  if (op == Op::dot4 || op == Op::dot4_signed) {
    return type.is_vector() && target.has_dot4(op == Op::dot4_signed);
  }
  if (op != Op::dot2 || !target.pair_products) return false;
  return is_arm(target) ? !type.is_vector()
                        : type.is_vector() && type.lanes == target.vector_lanes(4);
}

namespace {

/// gcc forms sums of integers in an order of its own, for which it runs out of registers.
std::string ordered_sum(Prelude& prelude, Type type, const std::string& product) {
  const std::string c_type = prelude.type(type);
  const auto lines = [&](const char* addition) {
    return fmt::format(
        "  const {} p = {};\n  __asm__(\"{}\" : \"+{}\"(c) : \"{}\"(p));\n  return c;\n", c_type,
        product, addition, type.lanes == 16 ? "v" : "x", type.lanes == 16 ? "v" : "x");
  };
  const std::string sum = fmt::format("  return ({0})(({1}){2} + ({1})c);\n", c_type,
                                      prelude.unsigned_type(type), product);
  return fmt::format(
      "#if !defined(__clang__) && defined(__AVX{}__)\n{}"
      "#else\n{}#endif\n",
      type.lanes == 16  ? "512BW"
      : type.lanes == 8 ? "2"
                        : "",
      lines("vpaddd %1, %0, %0"), sum);
}

}  // namespace

Text product_sum_text(Prelude& prelude, Op op, Type type, const Text& a, const Text& b,
                      const Text& sum) {
  if (op != Op::dot2) return byte_product_sum_text(prelude, op, type, a, b, sum);
  const std::string name = "dot2_add_" + prelude.tag(type);
  prelude.helper(name, [&] {
    const std::string product = product_of(prelude, type, "a", "b"), c_type = prelude.type(type);
    const std::string head =
        inline_function(c_type, name, fmt::format("{0} a, {0} b, {0} c", c_type)) + " {\n";
    if (type.is_vector()) return head + ordered_sum(prelude, type, product) + "}\n";
    const std::string otherwise =
        fmt::format("  return (int32_t)((uint32_t){} + (uint32_t)c);\n", product);
    return head + arm_body(prelude, "  return __smlad(a, b, c);\n", otherwise) + "}\n";
  });
  return {fmt::format("{}({}, {}, {})", name, a.text, b.text, sum.text)};
}

}  // namespace backcast::c_backend
