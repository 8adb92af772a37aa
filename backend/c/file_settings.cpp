// See file_settings.h.
#include "backend/c/file_settings.h"

#include <fmt/format.h>

#include "backend/c/neon.h"

namespace backcast::c_backend {

namespace {

/// A condition on the macros of the options that the code relies on; empty where it needs none.
/// Other machines compile it as far as they can, for tests on a host.
std::string missing_options(const TargetInfo& target) {
  switch (target.architecture) {
    case Architecture::x86_64:
      if (target.vector_bits == 512) return "defined(__x86_64__) && !defined(__AVX512F__)";
      if (target.vector_bits < 256) return "";
      return "defined(__x86_64__) && !(defined(__AVX2__) && defined(__FMA__))";
    case Architecture::aarch64:
      if (target.byte_products)
        return "defined(__aarch64__) && !defined(__ARM_FEATURE_MATMUL_INT8)";
      if (!target.signed_byte_products) return "";
      return "defined(__aarch64__) && !defined(__ARM_FEATURE_DOTPROD)";
    case Architecture::arm:
    case Architecture::thumb:
      return target.has_f32 ? "defined(__arm__) && !defined(__ARM_FP)" : "";
    case Architecture::riscv32:
    case Architecture::riscv64:
      return target.has_f32 ? "defined(__riscv) && !defined(__riscv_flen)" : "";
    case Architecture::wasm32:
      return "defined(__wasm__) && !defined(__wasm_simd128__)";
    case Architecture::xtensa:
    case Architecture::any:
      break;
  }
  return "";
}

constexpr std::string_view kGnuC =
    "#if defined(__clang__)\n"
    "#pragma STDC FP_CONTRACT OFF\n"
    "#else\n"
    "/* A tile needs its registers: no loaded value is carried from one iteration to another.\n"
    " * gcc 12 makes wrong vectors of loops over several sums of small integers. */\n"
    "#pragma GCC optimize(\"fp-contract=off\", \"no-predictive-commoning\", \\\n"
    "  \"no-tree-loop-vectorize\")\n"
    "#if defined(__x86_64__)\n"
    "/* Tuned for one processor (-march=native), gcc reads again from memory what a register\n"
    " * holds for several products. */\n"
    "#pragma GCC target(\"tune=generic\")\n"
    "#endif\n"
    "#endif\n";

constexpr std::string_view kGnuMacros =
    "#define BC_INLINE static inline __attribute__((always_inline, unused))\n"
    "#define BC_KERNEL static __attribute__((noinline))\n"
    "#if defined(__arm__) && !defined(__clang__)\n"
    "/* For gcc: scheduling before register allocation and its default allocation spill\n"
    " * accumulators, reused registers put an addition behind its product, and a copy for one\n"
    " * caller's buffers computes every address anew. */\n"
    "#define BC_TILE_KERNEL static __attribute__((noinline, noclone, \\\n"
    "  optimize(\"no-schedule-insns\", \"ira-algorithm=priority\", "
    "\"rename-registers\")))\n"
    "#else\n"
    "#define BC_TILE_KERNEL BC_KERNEL\n"
    "#endif\n"
    "/* Overlaps a buffer of elements of another type. */\n"
    "#define BC_ALIASING(type) type __attribute__((may_alias))\n";

/// Attributes say what is for speed and against warnings only, except for BC_ALIASING: compilers
/// leave volatile accesses in their order.
constexpr std::string_view kIsoC =
    "#include <limits.h>\n"
    "#include <math.h>\n"
    "#include <string.h>\n"
    "#if defined(INT_MAX) && INT_MAX < 2147483647\n"
    "#error \"needs an int of 32 bits\"\n"
    "#endif\n"
    "#if defined(_MSC_VER)\n"
    "#pragma fp_contract(off)\n"
    "#define restrict __restrict\n"
    "#else\n"
    "#pragma STDC FP_CONTRACT OFF\n"
    "#endif\n"
    "#undef __attribute__\n"
    "#define __attribute__(list)\n"
    "#define __builtin_memcpy memcpy\n"
    "#define __builtin_memmove memmove\n"
    "#define __builtin_memset memset\n"
    "#define __builtin_fabs fabs\n"
    "#define __builtin_fabsf fabsf\n"
    "#define __builtin_fma fma\n"
    "#define __builtin_fmaf fmaf\n"
    "#define __builtin_inf() HUGE_VAL\n"
    "#define __builtin_inff() HUGE_VALF\n"
    "#define __builtin_nan(text) NAN\n"
    "#define __builtin_nanf(text) NAN\n"
    "#define BC_INLINE static inline\n"
    "#define BC_KERNEL static\n"
    "#define BC_TILE_KERNEL static\n"
    "#define BC_ALIASING(type) volatile type\n";

}  // namespace

std::string options_check(const TargetInfo& target) {
  const std::string missing = missing_options(target);
  if (missing.empty()) return "";
  return fmt::format("#if {}\n#error \"made for {}: compile with {}\"\n#endif\n\n", missing,
                     target.name, target.compiler_flags);
}

std::string file_settings(const TargetInfo& target, bool has_vectors) {
  std::string text =
      "#if (defined(__GNUC__) || defined(__clang__)) && !defined(BC_ISO_C)\n"
      "#define BC_GNU_C\n"
      "#endif\n\n"
      "#if defined(BC_GNU_C)\n";
  text += kGnuC;
  if (has_vectors) {
    if (target.architecture == Architecture::arm) text += neon_include();
    text += "#pragma GCC diagnostic ignored \"-Wpsabi\" /* all functions are local */\n";
  }
  text += kGnuMacros;
  text += "#else\n";
  if (target.vector_bits > 0) {
    text += "#error \"vectors are those of gcc and clang (clang-cl); for others: --target c99\"\n";
  } else {
    text += kIsoC;
  }
  return text + "#endif\n\ntypedef ptrdiff_t index_t;\n\n";
}

}  // namespace backcast::c_backend
