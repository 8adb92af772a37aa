// dot4 and dot4_signed (operations.h), always as the addition to a sum that its instructions are:
// on x86 and on AArch64 where the compiler's flags allow it, shifts and products elsewhere.
#include <fmt/format.h>

#include "backend/c/operations.h"
#include "backend/c/vector_parts.h"

namespace backcast::c_backend {

using loop::Op;
using loop::Type;

namespace {

std::string generic_body(Prelude& prelude, Op op, Type type) {
  const std::string plain = prelude.type(type), wrapping = prelude.unsigned_type(type);
  std::string lines = fmt::format("  {0} s = ({0})c;\n", wrapping);
  for (const int up : {24, 16, 8, 0}) {
    const std::string top = fmt::format("({})a << {}", wrapping, up);
    const std::string x = op == Op::dot4
                              ? fmt::format("({} >> 24)", top)
                              : fmt::format("({})(({})({}) >> 24)", wrapping, plain, top);
    lines +=
        fmt::format("  s += {3} * ({0})(({2})(({0})b << {1}) >> 24);\n", wrapping, up, plain, x);
  }
  return lines + fmt::format("  return ({})s;\n", plain);
}

/// `instruction` where the compiler has it.
std::string guarded(Prelude& prelude, Op op, Type type, std::string_view condition,
                    const std::string& instruction) {
  return fmt::format("#if {}\n{}#else\n{}#endif\n", condition, instruction,
                     generic_body(prelude, op, type));
}

std::string x86_body(Prelude& prelude, Type type) {
  const int32_t lanes = type.lanes, bits = 32 * lanes;
  const std::string condition =
      lanes == 16 ? "defined(__AVX512VNNI__)"
                  : "defined(__AVX512VNNI__) && defined(__AVX512VL__) || defined(__AVXVNNI__)";
  return guarded(prelude, Op::dot4, type, condition,
                 fmt::format("#if defined(__clang__)\n"
                             "  return __builtin_ia32_vpdpbusd{}(c, a, b);\n#else\n"
                             "  return __builtin_ia32_vpdpbusd_v{}si(c, a, b);\n#endif\n",
                             bits, lanes));
}

std::string aarch64_body(Prelude& prelude, Op op, Type type) {
  const bool mixed = op == Op::dot4;
  prelude.helper("arm_neon", [] {
    return std::string("#if defined(__ARM_NEON)\n#include <arm_neon.h>\n#endif\n");
  });
  return guarded(prelude, op, type,
                 mixed ? "defined(__ARM_FEATURE_MATMUL_INT8)" : "defined(__ARM_FEATURE_DOTPROD)",
                 fmt::format("  return ({})v{}dotq_s32((int32x4_t)c, ({}int8x16_t)a, "
                             "(int8x16_t)b);\n",
                             prelude.type(type), mixed ? "us" : "", mixed ? "u" : ""));
}

std::string body(Prelude& prelude, Op op, Type type) {
  const TargetInfo& target = prelude.target();
  if (!adds_products(target, op, type)) return generic_body(prelude, op, type);
  if (type.lanes < 4 || type.lanes > target.vector_lanes(4)) {
    const auto sum_of = [op](Prelude& p, Type part, const std::vector<std::string>& operands) {
      return byte_product_sum_text(p, op, part, {operands[0]}, {operands[1]}, {operands[2]}).text;
    };
    return by_registers(prelude, type, type, {"a", "b", "c"}, sum_of);
  }
  return target.architecture == Architecture::x86_64 ? x86_body(prelude, type)
                                                     : aarch64_body(prelude, op, type);
}

}  // namespace

Text byte_product_sum_text(Prelude& prelude, Op op, Type type, const Text& a, const Text& b,
                           const Text& sum) {
  const std::string name = fmt::format("{}_add_{}", loop::name_of(op), prelude.tag(type));
  prelude.helper(name, [&] {
    const std::string c_type = prelude.type(type), lines = body(prelude, op, type);
    return inline_function(c_type, name, fmt::format("{0} a, {0} b, {0} c", c_type)) + " {\n" +
           lines + "}\n";
  });
  return {fmt::format("{}({}, {}, {})", name, a.text, b.text, sum.text)};
}

Text byte_product_text(Prelude& prelude, Op op, Type type, const Text& a, const Text& b) {
  const std::string zero = fmt::format("({}){{0}}", prelude.type(type));
  return byte_product_sum_text(prelude, op, type, a, b, {zero});
}

Text summed_byte_product_text(Prelude& prelude, Type type, const Text& a, const Text& b,
                              const Text& sum) {
  const std::string name = "dot4_signed_sum_" + prelude.tag(type);
  prelude.helper(name, [&] {
    const std::string bytes = prelude.type({loop::Scalar::i8, 4 * type.lanes});
    const std::string wide = prelude.type({loop::Scalar::i32, 4 * type.lanes});
    const Text product = byte_product_text(prelude, Op::dot4_signed, type, {"a"}, {"b"});
    const std::string all = reduce_text(prelude, Op::add, type, product).text;
    return inline_function("int32_t", name,
                           fmt::format("{0} a, {0} b, int32_t c", prelude.type(type))) +
           fmt::format(
               // clang would add up two products lane by lane first, which takes them apart.
               " {{\n#if !defined(__ARM_FEATURE_MVE)\n"
               "  return (int32_t)((uint32_t)c + (uint32_t){0});\n#elif defined(__clang__)\n"
               "  const {2} p = __builtin_convertvector(({1})a, {2}) *\n"
               "      __builtin_convertvector(({1})b, {2});\n"
               "  int32_t r = (int32_t)((uint32_t)c + (uint32_t)__builtin_reduce_add(p));\n"
               "  __asm__(\"\" : \"+r\"(r));\n  return r;\n#else\n"
               "  return __builtin_mve_vmladavaq_sv16qi(c, ({1})a, ({1})b);\n#endif\n}}\n",
               all, bytes, wide);
  });
  return {fmt::format("{}({}, {}, {})", name, a.text, b.text, sum.text)};
}

}  // namespace backcast::c_backend
