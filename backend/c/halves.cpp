#include "backend/c/halves.h"

#include <fmt/format.h>

#include "backend/c/mve.h"
#include "backend/c/vector_parts.h"

namespace backcast::c_backend {

using loop::Scalar;
using loop::Type;

namespace {

/// Statements that return the parameter `a` converted, and when compilers take them.
struct Instruction {
  std::string condition, lines;
};

constexpr std::string_view kWidenedInIntegers =
    "  const uint32_t size = a & 0x7fffu, sign = (a & 0x8000u) << 16;\n"
    "  const float small = (float)size * 0x1p-24f;\n"
    "  uint32_t bits = (size << 13) + (size < 0x7c00u ? 0x38000000u : 0x70000000u);\n"
    "  float r;\n"
    "  if (size < 0x400u) __builtin_memcpy(&bits, &small, sizeof bits);\n"
    "  bits |= sign;\n"
    "  __builtin_memcpy(&r, &bits, sizeof r);\n"
    "  return r;\n";

// Below the smallest normal number 0.5 is added, whose last bit has the value of that of f16.
constexpr std::string_view kNarrowedInIntegers =
    "  uint32_t bits, size, sum;\n"
    "  __builtin_memcpy(&bits, &a, sizeof bits);\n"
    "  size = bits & 0x7fffffffu;\n"
    "  const uint16_t sign = (uint16_t)((bits >> 16) & 0x8000u);\n"
    "  if (size > 0x7f800000u) return (uint16_t)(sign | 0x7e00u | ((size >> 13) & 0x3ffu));\n"
    "  if (size >= 0x477ff000u) return (uint16_t)(sign | 0x7c00u);\n"
    "  if (size >= 0x38800000u) {\n"
    "    return (uint16_t)(sign | ((size - 0x38000000u + 0xfffu + ((size >> 13) & 1u)) >> 13));\n"
    "  }\n"
    "  float small;\n"
    "  __builtin_memcpy(&small, &size, sizeof small);\n"
    "  small += 0.5f;\n"
    "  __builtin_memcpy(&sum, &small, sizeof sum);\n"
    "  return (uint16_t)(sign | (sum - 0x3f000000u));\n";

Instruction on_x86(Prelude& prelude, Type from, Type to) {
  const bool widens = from.scalar == Scalar::f16;
  const std::string result = prelude.type(to);
  const auto halves = [](int bytes) {
    return fmt::format("  typedef short halves __attribute__((vector_size({})));\n", bytes);
  };
  if (to.lanes == 16) {
    if (!widens) {
      return {"defined(__AVX512F__)",
              halves(32) + fmt::format("  return ({})__builtin_ia32_vcvtps2ph512_mask(a, 4, "
                                       "(halves){{0}}, 0xffff);\n",
                                       result)};
    }
    // gcc takes this mask for a number with a sign.
    return {"defined(__AVX512F__)",
            halves(32) +
                fmt::format("#if defined(__clang__)\n  const unsigned short all = 0xffff;\n"
                            "#else\n  const short all = -1;\n#endif\n"
                            "  return ({0})__builtin_ia32_vcvtph2ps512_mask((halves)a, ({0}){{0}}, "
                            "all, 4);\n",
                            result)};
  }
  const char* condition = "defined(__F16C__)";
  if (to.lanes == 8) {
    const std::string call =
        widens ? halves(16) +
                     fmt::format("  return ({})__builtin_ia32_vcvtph2ps256((halves)a);\n", result)
               : fmt::format("  return ({})__builtin_ia32_vcvtps2ph256(a, 4);\n", result);
    return {condition, call};
  }
  if (to.lanes != 4 && to.lanes != 1) return {};
  std::string lines = halves(16);
  lines += "  typedef float floats __attribute__((vector_size(16)));\n";
  if (widens) {
    lines +=
        "  halves wide = {0};\n"
        "  __builtin_memcpy(&wide, &a, sizeof a);\n"
        "  const floats r = __builtin_ia32_vcvtph2ps(wide);\n";
    return {condition, lines + fmt::format("  return {};\n",
                                           to.lanes == 1 ? "r[0]" : fmt::format("({})r", result))};
  }
  return {condition, lines + fmt::format("  const halves wide = __builtin_ia32_vcvtps2ph({}, 4);\n"
                                         "  {} r;\n"
                                         "  __builtin_memcpy(&r, &wide, sizeof r);\n"
                                         "  return r;\n",
                                         to.lanes == 1 ? "(floats){a}" : "(floats)a", result)};
}

Instruction on_aarch64(Prelude& prelude, Type from, Type to) {
  const bool widens = from.scalar == Scalar::f16;
  const char* condition = "defined(__aarch64__)";
  if (to.lanes == 4) {
    return {condition,
            fmt::format("  {} r;\n  __asm__(\"{}\" : \"=w\"(r) : \"w\"(a));\n  return r;\n",
                        prelude.type(to), widens ? "fcvtl %0.4s, %1.4h" : "fcvtn %0.4h, %1.4s")};
  }
  if (to.lanes != 1) return {};
  return {condition, widens ? "  __fp16 half;\n"
                              "  __builtin_memcpy(&half, &a, sizeof half);\n"
                              "  return half;\n"
                            : "  const __fp16 half = (__fp16)a;\n"
                              "  uint16_t r;\n"
                              "  __builtin_memcpy(&r, &half, sizeof r);\n"
                              "  return r;\n"};
}

/// The lower half of a register of the floating-point unit.
Instruction on_arm(Type from, Type to) {
  if (to.lanes != 1) return {};
  const std::string condition =
      "defined(BC_GNU_C) && defined(__arm__) && defined(__ARM_FP) && (__ARM_FP & 2)";
  if (from.scalar == Scalar::f16) {
    return {condition,
            "  const uint32_t bits = a;\n"
            "  float half, r;\n"
            "  __builtin_memcpy(&half, &bits, sizeof half);\n"
            "  __asm__(\"vcvtb.f32.f16 %0, %1\" : \"=t\"(r) : \"t\"(half));\n"
            "  return r;\n"};
  }
  return {condition,
          "  float half = 0;\n"
          "  uint32_t bits;\n"
          "  __asm__(\"vcvtb.f16.f32 %0, %1\" : \"+t\"(half) : \"t\"(a));\n"
          "  __builtin_memcpy(&bits, &half, sizeof bits);\n"
          "  return (uint16_t)bits;\n"};
}

Instruction instruction(Prelude& prelude, Type from, Type to) {
  switch (prelude.target().architecture) {
    case Architecture::x86_64:
      return on_x86(prelude, from, to);
    case Architecture::aarch64:
      return on_aarch64(prelude, from, to);
    case Architecture::arm:
    case Architecture::thumb:
      return on_arm(from, to);
    default:
      return {};
  }
}

/// Halves lie in the lower parts of words. The instructions are written as numbers, since GNU's
/// assembler 2.40 takes their registers for others: vcvtb.f32.f16 q0, q0 and vcvtb.f16.f32 q0, q1.
std::string on_mve(Prelude& prelude, Type from, Type to) {
  const Type words = {Scalar::i32, to.lanes};
  const std::string word = prelude.type(words);
  if (from.scalar == Scalar::f16) {
    const Text widened = convert_lanes(prelude, Scalar::u16, words, {"a"});
    return fmt::format(
        "  register {} words __asm__(\"q0\") = {};\n  register {} r __asm__(\"q0\");\n"
        "  __asm__(\".inst.w 0xfe3f0e01\" : \"=w\"(r) : \"w\"(words));\n  return r;\n",
        word, widened.text, prelude.type(to));
  }
  const Text narrowed = convert_lanes(prelude, Scalar::i32, {Scalar::u16, to.lanes}, {"words"});
  return fmt::format(
      "  register {} words __asm__(\"q0\") = {{0}};\n  register {} value __asm__(\"q1\") = a;\n"
      "  __asm__(\".inst.w 0xee3f0e03\" : \"+w\"(words) : \"w\"(value));\n  return {};\n",
      word, prelude.type(from), narrowed.text);
}

}  // namespace

bool is_half_conversion(const TargetInfo& target, Scalar from, Scalar to) {
  return target.converts_halves &&
         ((from == Scalar::f16 && to == Scalar::f32) || (from == Scalar::f32 && to == Scalar::f16));
}

Text half_conversion_text(Prelude& prelude, Type from, Type to, const Text& a) {
  const bool widens = from.scalar == Scalar::f16;
  const std::string name =
      fmt::format("{}_half_{}", widens ? "from" : "to", prelude.tag(widens ? to : from));
  prelude.helper(name, [&] {
    std::string body;
    if (to.is_vector()) {
      const Text lane =
          half_conversion_text(prelude, from.with_lanes(1), to.with_lanes(1), {"a[lane]"});
      body = fmt::format("  {} r;\n{}  return r;\n", prelude.type(to), by_lanes(to, lane.text));
      const Type floats = widens ? to : from;
      const bool on_m55 = prelude.target().architecture == Architecture::thumb;
      if (on_m55) body = with_mve(prelude, floats, on_mve(prelude, from, to), body, true);
    } else {
      body = widens ? kWidenedInIntegers : kNarrowedInIntegers;
    }
    const Instruction by = instruction(prelude, from, to);
    if (!by.lines.empty()) {
      body = fmt::format("#if {}\n{}#else\n{}#endif\n", by.condition, by.lines, body);
    }
    return inline_function(prelude.type(to), name, prelude.type(from) + " a") + " {\n" + body +
           "}\n";
  });
  return {fmt::format("{}({})", name, a.text)};
}

}  // namespace backcast::c_backend
