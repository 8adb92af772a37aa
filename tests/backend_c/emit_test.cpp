// Emitted C against the interpreter: every program compiled by every compiler, optimised with all
// warnings as errors and once under UndefinedBehaviorSanitizer, bit for bit.
#include "backend/c/emit.h"

#include <gtest/gtest.h>

#include <array>
#include <regex>

#include "ir/loop/interpreter.h"
#include "ir/loop/text.h"
#include "tests/backend_c/compiled.h"

namespace backcast::c_test {
namespace {

constexpr const char* kWarnings =
    "-std=c11 -O2 -Wall -Wextra -Wconversion -Wdouble-promotion -pedantic -Werror";

std::vector<std::vector<Literal>> interpreted(const std::vector<Case>& cases) {
  std::vector<std::vector<Literal>> results;
  for (const Case& c : cases) {
    results.push_back(loop::interpret(c.program, c.program.entries[0].name, c.inputs));
  }
  return results;
}

void compare(const Library& library, const Case& c, const std::vector<Literal>& expected) {
  int32_t status = -1;
  const std::vector<Literal> actual = run(library, c, status);
  EXPECT_EQ(status, 0) << c.program.name;
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    const std::string found = difference(actual[i], expected[i]);
    const loop::BufferId id = c.program.entries[0].outputs[i];
    EXPECT_EQ(found, "") << c.program.name << ", output " << c.program.buffer(id).name;
  }
}

void check(const std::vector<Case>& cases, const TargetInfo& target = host_target()) {
  const std::vector<std::vector<Literal>> expected = interpreted(cases);
  for (const Compiler& compiler : host_compilers()) {
    const std::string trap = compiler.name == "gcc"
                                 ? " -fsanitize=undefined -fsanitize-undefined-trap-on-error"
                                 : " -fsanitize=undefined -fsanitize-trap=undefined";
    for (const std::string& flags : {std::string(kWarnings), std::string("-std=c11 -O1") + trap}) {
      SCOPED_TRACE(compiler.name + " " + flags);
      const Folder folder;
      std::string messages;
      const Library library(folder, cases, target, compiler.command + " " + flags, messages);
      ASSERT_EQ(messages, "");
      for (size_t i = 0; i < cases.size(); ++i) compare(library, cases[i], expected[i]);
    }
  }
}

TEST(EmitC, Compilers) { EXPECT_FALSE(host_compilers().empty()); }
TEST(EmitC, Arithmetic) { check(arithmetic_cases()); }
/// The host, without gcc's notes on how wide vectors were once passed to functions.
TargetInfo without_notes() {
  TargetInfo target = host_target();
  target.compiler_flags += " -Wno-psabi";
  return target;
}
TEST(EmitC, PairProducts) {
  check(pair_product_cases(), without_notes());
  check(byte_product_cases(), without_notes());
}
TEST(EmitC, BytesOfTables) {
  TargetInfo target = without_notes();
  check(byte_look_up_cases(), target);
  // Compiled for less than the file was made for, too.
  target.byte_tables = true;
  target.compiler_flags = "-march=x86-64 -Wno-psabi";
  if (target.architecture == Architecture::x86_64) check(byte_look_up_cases(), target);
}
TEST(EmitC, Nearest) { check(nearest_cases(std::array{1, 2, 4, 8, 16}), without_notes()); }
TEST(EmitC, Halves) {
  const std::vector<Case> cases = half_cases(std::array{1, 2, 4, 8, 16});
  if (host_target().converts_halves) check(cases, without_notes());
  // Compiled for less than the file was made for.
  TargetInfo target = *find_target("x86-64-v4");
  target.compiler_flags = "-march=x86-64 -Wno-psabi";
  check(cases, target);
}
/// Compiled for less than the file was made for.
TEST(EmitC, PairProductsWithoutInstructions) {
  TargetInfo target = *find_target("cascadelake");
  target.compiler_flags = "-march=x86-64 -Wno-psabi";
  check(nearest_cases(std::array{1, 16}), target);
  check(pair_product_cases(), target);
  check(byte_product_cases(), target);
}
TEST(EmitC, Conversions) { check(conversion_cases()); }
TEST(EmitC, Vectors) { check(vector_cases()); }
TEST(EmitC, Statements) { check(statement_cases()); }
TEST(EmitC, Math) { check(math_cases(host_target().has_fma)); }
TEST(EmitC, MathWithoutFma) { check(math_cases(false)); }
TEST(EmitC, Instructions) {
  if (!host_target().has_fma) GTEST_SKIP() << "this machine has no fma";
  check(rounding_cases());
  check({lane_sums(8, 3)});
}
TEST(EmitC, WidestVectors) {
  if (!__builtin_cpu_supports("x86-64-v4")) GTEST_SKIP() << "this machine has no AVX-512";
  TargetInfo target = *find_target("x86-64-v4");
  target.compiler_flags += " -Wno-psabi";
  check(widest_cases(), target);
}

/// What `command` (a compiler and its flags) makes of the C emitted for a target.
std::string assembly_by(const std::string& command, const loop::Program& program,
                        const TargetInfo& target, const std::string& form = "-S -o -") {
  const Folder folder;
  const CSource source = emit_c(program, target, {.header = {.target = target.name}});
  folder.write(program.name + ".c", source.source);
  folder.write(program.name + ".h", source.header);
  bool ok = false;
  const std::string text = run_command(
      fmt::format("cd {} && {} -std=c11 {} {}.c", folder.path(), command, form, program.name), ok);
  EXPECT_TRUE(ok) << text;
  return text;
}

/// Instructions of the emitted C, as every compiler gives it for a target.
std::vector<std::string> assembly_of(const Case& c, const std::string& name) {
  const TargetInfo& target = *find_target(name);
  std::vector<std::string> commands;
  if (is_installed(target.cross_compiler)) commands.push_back(target.cross_compiler);
  if (is_installed("clang-19")) {
    commands.push_back("clang-19 -ffreestanding -nostdlibinc --target=" + target.triple);
  }
  std::vector<std::string> texts;
  for (const std::string& command : commands) {
    texts.push_back(assembly_by(command + " -O2 " + target.compiler_flags, c.program, target));
  }
  return texts;
}

TEST(EmitC, PairProductsAreInstructions) {
  const std::pair<const char*, const char*> vectors[] = {{"x86-64", "pmaddwd.*%xmm"},
                                                         {"x86-64-v3", "vpmaddwd.*%ymm"},
                                                         {"x86-64-v4", "vpmaddwd.*%zmm"}};
  for (const auto& [name, instruction] : vectors) {
    for (const std::string& text : assembly_of(pair_product_cases().back(), name)) {
      EXPECT_TRUE(std::regex_search(text, std::regex(instruction))) << name;
      EXPECT_FALSE(std::regex_search(text, std::regex("pmulld"))) << name;
    }
  }
  for (const char* name : {"cortex-m4", "cortex-m7", "cortex-m33", "cortex-m55-nomve"}) {
    for (const std::string& text : assembly_of(nearest_cases(std::array{1}).front(), name)) {
      EXPECT_TRUE(std::regex_search(text, std::regex("vcvtr"))) << name;
    }
    for (const std::string& text : assembly_of(pair_product_cases().front(), name)) {
      for (const char* instruction : {"smuad", "smlad", "sxtb16", "sxtb16.*ror #8"}) {
        EXPECT_TRUE(std::regex_search(text, std::regex(instruction))) << name << instruction;
      }
      // A word of two numbers is loaded at once.
      EXPECT_FALSE(std::regex_search(text, std::regex("ldrs?h|pkhbt|\tror"))) << name;
    }
  }
}

/// No lane on its own: a predicate that a comparison leaves is used where it is, and a product with
/// a scalar takes it from a general register.
TEST(EmitC, RegistersOfFourAreInstructions) {
  for (const std::string& text : assembly_of(register_cases().front(), "cortex-m55")) {
    for (const char* instruction :
         {"vcmp.f32", "vcmp.s32", "vpsel", "vfma.f32\\s+q[0-7], ?q[0-7], ?q", "vrintm",
          "vfma.f32\\s+q[0-7], ?q[0-7], ?r"}) {
      EXPECT_TRUE(std::regex_search(text, std::regex(instruction))) << instruction;
    }
    for (const char* instruction : {"vmrs", "vcmpe?.f32\\s+s", "vrint..f32\\s+s"}) {
      EXPECT_FALSE(std::regex_search(text, std::regex(instruction))) << instruction;
    }
  }
}

/// The bits of a fraction are part of the instruction that converts it, in no register.
TEST(EmitC, FractionsOfFourHaveTheirBitsInTheInstruction) {
  for (const std::string& text : assembly_of(register_cases().at(1), "cortex-m55")) {
    EXPECT_TRUE(std::regex_search(text, std::regex("vcvt.f32.[su]32\\s+q[0-7], ?q")));
    EXPECT_TRUE(std::regex_search(text, std::regex("vcvt.[su]32.f32\\s+q[0-7], ?q")));
    EXPECT_FALSE(
        std::regex_search(text, std::regex("vcvt.[fsu]32.[fsu]32\\s+q[0-7], ?q[0-7], ?r")));
  }
}

/// Widened as they are loaded, narrowed as they are stored, never byte by byte.
TEST(EmitC, SmallIntegersPassRegistersOfFour) {
  for (const std::string& text : assembly_of(register_cases().back(), "cortex-m55")) {
    for (const char* instruction : {"vldrb.s32", "vldrb.u32", "vldrh.s32", "vldrh.u32", "vstrb.32",
                                    "vstrh.32", "vmla.[isu]32\\s+q[0-7], ?q[0-7], ?r"}) {
      EXPECT_TRUE(std::regex_search(text, std::regex(instruction))) << instruction;
    }
    EXPECT_FALSE(std::regex_search(text, std::regex("\t(ldrs?b|strb|ldrs?h|strh)")));
  }
}

/// A loop of just under the 126 bytes that a short branch reaches, by gcc's count: it takes
/// constants in registers of four lanes for half as long as they are.
TEST(EmitC, BranchesReachAcrossConstantRegisters) {
  const TargetInfo& target = *find_target("cortex-m55");
  if (!is_installed(target.cross_compiler)) GTEST_SKIP() << "no compiler";
  const auto largest = [](const std::string& type, const char* half, const char* sum,
                          const std::string& value) {
    return fmt::format(
        "store {2} = select(is_nan(load {0} {2}), load {0} {2}, max(load {0} {2}, cast {0} (cast "
        "{1} (min(122:{3}, max(-133:{3}, nearest({4}/0.015625:{0})))))*0.015625:{0}))",
        type, half, sum, type == "f32" ? "i32" : "i32x4", value);
  };
  const auto of_four = [&](int part) {
    const std::string read = fmt::format("load f32x4 a0[k1*10 + k2*10 - {}]", 20 - 4 * part);
    return largest("f32x4", "i16x4", part == 0 ? "acc[0]" : "acc[1]",
                   "(if k1 - 2 >= 0 & k1 - 2 < 1 & k2 < 1 then " + read + " else 0:f32x4)");
  };
  const std::string rest =
      largest("f32", "i16", "acc_2[0]",
              "(if k1_2 - 2 >= 0 & k1_2 - 2 < 1 & k2_2 < 1 then load f32 a0[i1 + k1_2*10 + k2_2*10 "
              "- 12] else 0:f32)");
  const loop::Program program = loop::parse_program(fmt::format(
      R"(program @far
buffer %x : f32[10] input loc("x", "")
buffer %y : f32[10] output loc("y", "")
kernel @pool(a0: f32[10] read, out0: f32[10] write) loc("y", "MaxPool") {{
  block {{
    alloc acc : f32x4[2] registers
    store acc[0] = -inf:f32x4
    store acc[1] = -inf:f32x4
    for k1 in 0 .. 4 {{
      for k2 in 0 .. 2 {{
        {}
        {}
      }}
    }}
    store out0[0] = load f32x4 acc[0]
    store out0[4] = load f32x4 acc[1]
  }}
  for i1 in 0 .. 2 {{
    alloc acc_2 : f32[1] registers
    store acc_2[0] = -inf:f32
    for k1_2 in 0 .. 4 {{
      for k2_2 in 0 .. 2 {{
        {}
      }}
    }}
    store out0[i1 + 8] = load f32 acc_2[0]
  }}
}}
entry @run(%x) -> (%y) {{
  call @pool(%x, %y) loc("y", "MaxPool")
}}
)",
      of_four(0), of_four(1), rest));
  assembly_by(target.cross_compiler + " -O2 " + target.compiler_flags, program, target,
              "-c -o far.o");
}

/// gcc 12's vectoriser adds up something else.
TEST(EmitC, SumsOfBytesInTurns) {
  const loop::Program program = loop::parse_program(R"(program @turns
buffer %x : u8[18] input loc("x", "")
buffer %y : i32[1] output loc("y", "ReduceSum")
kernel @sum(a0: u8[18] read, out0: i32[1] write) loc("y", "ReduceSum") {
  alloc acc : i32[4] registers
  store acc[0] = 0:i32
  store acc[1] = 0:i32
  store acc[2] = 0:i32
  store acc[3] = 0:i32
  for k0 in 0 .. 4 {
    store acc[0] = load i32 acc[0] + cast i32 (load u8 a0[k0*4])
    store acc[1] = load i32 acc[1] + cast i32 (load u8 a0[k0*4 + 1])
    store acc[2] = load i32 acc[2] + cast i32 (load u8 a0[k0*4 + 2])
    store acc[3] = load i32 acc[3] + cast i32 (load u8 a0[k0*4 + 3])
  }
  store acc[0] = load i32 acc[0] + cast i32 (load u8 a0[16])
  store acc[1] = load i32 acc[1] + cast i32 (load u8 a0[17])
  store out0[0] = load i32 acc[0] + load i32 acc[2] + (load i32 acc[1] + load i32 acc[3])
}
entry @run(%x) -> (%y) {
  call @sum(%x, %y) loc("y", "ReduceSum")
}
)");
  check({{program, {interesting(ElementType::u8, 18, 5)}}});
}

/// A factor that is a lane of a register goes into the multiply-add; gcc would look up its bytes.
TEST(EmitC, LanesOfNeonAreFactors) {
  const std::tuple<const char*, const char*, const char*, const char*> cases[] = {
      {"f32", "f32", "shuffle(f; 1, 1, 1, 1)*w", R"(\tvmla\.f32\tq\d+, q\d+, d\d+\[1\])"},
      {"i16", "i32", "cast i32x4 (shuffle(f; 3, 3, 3, 3))*cast i32x4 (w)",
       R"(\tvmlal\.s16\tq\d+, d\d+, d\d+\[3\])"}};
  for (const auto& [factor, sum, product, instruction] : cases) {
    const loop::Program program = loop::parse_program(fmt::format(
        R"(program @lanes
buffer %x : {0}[8] input loc("x", "")
buffer %w : {0}[8] input loc("w", "")
buffer %y : {1}[4] output loc("y", "MatMul")
kernel @dense(a0: {0}[8] read, a1: {0}[8] read, out0: {1}[4] write) loc("y", "MatMul") {{
  alloc acc : {1}x4[1] registers
  store acc[0] = 0:{1}x4
  for k0 in 0 .. 2 {{
    let f = load {0}x4 a0[k0*4]
    let w = load {0}x4 a1[k0*4]
    store acc[0] = load {1}x4 acc[0] + {2}
  }}
  store out0[0] = load {1}x4 acc[0]
}}
entry @run(%x, %w) -> (%y) {{
  call @dense(%x, %w, %y) loc("y", "MatMul")
}}
)",
        factor, sum, product));
    for (const std::string& text : assembly_of({program, {}}, "armv7-neon")) {
      EXPECT_TRUE(std::regex_search(text, std::regex(instruction))) << factor << text;
      EXPECT_FALSE(std::regex_search(text, std::regex("vtbl"))) << factor;
    }
  }
}

TEST(EmitC, ByteProductsAreInstructions) {
  struct Row {
    const char *target, *program, *instruction;
  };
  for (const Row& row : {Row{"cascadelake", "dot4_16", "vpdpbusd.*%zmm"},
                         Row{"aarch64-i8mm", "dot4_4", "\\tusdot\\t"},
                         Row{"cortex-a76", "dot4_signed_4", "\\tsdot\\t"},
                         Row{"cortex-m55", "dot4_signed_4", "\\tvmla(dav|v)a.s8\\t"}}) {
    for (const Case& c : byte_product_cases()) {
      if (c.program.name != row.program) continue;
      for (const std::string& text : assembly_of(c, row.target)) {
        EXPECT_TRUE(std::regex_search(text, std::regex(row.instruction))) << row.target;
        EXPECT_FALSE(std::regex_search(text, std::regex("pmulld|\\tmul\\t"))) << row.target;
      }
    }
  }
}

/// A step of two widths otherwise.
TEST(EmitC, BytesBecomeWordsAtOnce) {
  for (const Case& c : widest_cases()) {
    if (c.program.name != "cast_u8_16" && c.program.name != "cast_i32_16") continue;
    const bool widens = c.program.name == "cast_u8_16";
    for (const std::string& text : assembly_of(c, "x86-64-v4")) {
      EXPECT_TRUE(std::regex_search(text, std::regex(widens ? "vpmovzxbd.*%zmm" : "vpmovdb")))
          << c.program.name;
    }
  }
}

/// A comparison and a selection otherwise: gcc does not see what they are.
TEST(EmitC, ExtremesOfIntegersAreInstructions) {
  for (const Case& c : arithmetic_cases()) {
    if (c.program.name != "arith_i32_8") continue;
    for (const std::string& text : assembly_of(c, "x86-64-v3")) {
      EXPECT_TRUE(std::regex_search(text, std::regex("vpmaxsd.*%ymm")));
      EXPECT_TRUE(std::regex_search(text, std::regex("vpminsd.*%ymm")));
    }
  }
}

/// Whole vectors must not hang on gcc's vectoriser, which -O1 leaves out and -O3 lets go too far.
TEST(EmitC, GccTakesInstructionsOfWholeVectors) {
  if (!is_installed("gcc")) GTEST_SKIP() << "no gcc";
  for (const char* name : {"x86-64-v3", "x86-64-v4"}) {
    const TargetInfo& target = *find_target(name);
    const std::vector<Case> widest = widest_cases();
    const std::vector<Case> all = rounding_cases();
    for (const Case& c : target.vector_bits == 512 ? widest : all) {
      if (c.program.name.ends_with("_1")) continue;
      const std::string assembly =
          assembly_by("gcc -O2 -fno-tree-vectorize " + target.compiler_flags, c.program, target);
      const std::regex scalar("\\bv(fmadd[0-9]*|sqrt|round|rndscale|min|max)s[sd]\\b");
      std::smatch found;
      EXPECT_FALSE(std::regex_search(assembly, found, scalar))
          << target.name << " " << c.program.name << ": " << found.str();
    }
  }
}

/// Tuned for Zen, gcc joins every load with each of its products.
TEST(EmitC, GccLoadsOnceWhateverItIsTunedFor) {
  if (!is_installed("gcc")) GTEST_SKIP() << "no gcc";
  const std::string assembly = assembly_by("gcc -O3 -march=x86-64-v4 -mtune=znver3",
                                           lane_sums(16, 4).program, *find_target("x86-64-v4"));
  EXPECT_TRUE(std::regex_search(assembly, std::regex("\\bvfmadd[0-9]*ps"))) << assembly;
  EXPECT_FALSE(std::regex_search(assembly, std::regex("\\bvfmadd[0-9]*ps[^\n]*\\("))) << assembly;
}

}  // namespace
}  // namespace backcast::c_test
