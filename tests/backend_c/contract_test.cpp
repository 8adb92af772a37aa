// What a caller relies on besides the numbers: statuses, hooks, constants in a file, no libm, equal
// text for equal input, and C for every target that compiles there.
#include <gtest/gtest.h>

#include <set>
#include <sstream>

#include "backend/c/emit.h"
#include "ir/graph/error.h"
#include "runtime-c/include/bc_types.h"
#include "tests/backend_c/compiled.h"

namespace backcast::c_test {
namespace {

Case find_case(const std::string& name) {
  for (Case& c : statement_cases()) {
    if (c.program.name == name) return c;
  }
  throw InternalError("no case " + name);
}

/// The pipeline case: input x f32[N,4], N in 1..8; outputs y, z, f16; arena of 192 bytes.
struct Inputs {
  int64_t n;
  const float* x;
};
struct Outputs {
  int32_t *y, *z;
  uint16_t* f16;
};
using Entry = bc_status (*)(const Inputs*, const Outputs*, void*, size_t, const bc_context*);

class Contract : public testing::Test {
 protected:
  void SetUp() override {
    if (host_compilers().empty()) GTEST_SKIP() << "no compiler";
    std::string messages;
    std::vector<Case> cases;
    cases.push_back(find_case("pipeline"));
    library_ = std::make_unique<Library>(folder_, cases, host_target(),
                                         host_compilers()[0].command + " -O1", messages);
    ASSERT_EQ(messages, "");
    run_ = reinterpret_cast<Entry>(library_->symbol("pipeline_run"));
  }
  bc_status run(const bc_context* context = nullptr) {
    return run_(&in_, &out_, arena_, sizeof arena_, context);
  }

  Folder folder_;
  std::unique_ptr<Library> library_;
  Entry run_ = nullptr;
  float x_[33] = {};
  int32_t y_[32] = {}, z_[4] = {};
  uint16_t f16_[4] = {};
  alignas(64) unsigned char arena_[192] = {};
  Inputs in_ = {2, x_};
  Outputs out_ = {y_, z_, f16_};
};

TEST_F(Contract, Statuses) {
  EXPECT_EQ(run(), BC_OK);
  EXPECT_EQ(run_(nullptr, &out_, arena_, sizeof arena_, nullptr), BC_ERROR_NULL);
  EXPECT_EQ(run_(&in_, nullptr, arena_, sizeof arena_, nullptr), BC_ERROR_NULL);
  EXPECT_EQ(run_(&in_, &out_, nullptr, sizeof arena_, nullptr), BC_ERROR_NULL);
  EXPECT_EQ(run_(&in_, &out_, arena_, sizeof arena_ - 1, nullptr), BC_ERROR_ARENA_SIZE);
  EXPECT_EQ(run_(&in_, &out_, arena_ + 32, sizeof arena_, nullptr), BC_ERROR_ALIGNMENT);
  // The first of several faults in the ABI's order is the one that is told.
  EXPECT_EQ(run_(&in_, &out_, arena_ + 32, 0, nullptr), BC_ERROR_ARENA_SIZE);
  for (const int64_t n : {int64_t{0}, int64_t{9}, int64_t{-1}, int64_t{1} << 32 | 2}) {
    in_.n = n;
    EXPECT_EQ(run(), BC_ERROR_DIMENSION) << n;
  }
  in_ = {8, x_};
  EXPECT_EQ(run(), BC_OK);
  in_.x = nullptr;
  EXPECT_EQ(run(), BC_ERROR_NULL);
  in_.x = reinterpret_cast<const float*>(reinterpret_cast<const char*>(x_) + 2);
  EXPECT_EQ(run(), BC_ERROR_ALIGNMENT);
  in_.x = x_;
  out_.z = nullptr;
  EXPECT_EQ(run(), BC_ERROR_NULL);
}

TEST_F(Contract, Hooks) {
  std::stringstream log;
  bc_context context = {};
  context.struct_bytes = sizeof context;
  context.user = &log;
  context.before_kernel = [](void* user, int32_t kernel, const char* name) {
    *static_cast<std::stringstream*>(user) << "<" << kernel << " " << name;
  };
  context.after_kernel = [](void* user, int32_t kernel, const char*) {
    *static_cast<std::stringstream*>(user) << " " << kernel << ">";
  };
  EXPECT_EQ(run(&context), BC_OK);
  const std::string copy =
      "odd \"name\" \\ ?"
      "?/";
  EXPECT_EQ(log.str(), "<0 node*/scale 0><1 node*/bits 1><2 " + copy + " 2><3 " + copy + " 3><4 " +
                           copy + " 4>");
  // A caller's older, shorter struct: the hooks past its end do not exist.
  log.str("");
  context.struct_bytes = offsetof(bc_context, before_kernel);
  EXPECT_EQ(run(&context), BC_OK);
  EXPECT_EQ(log.str(), "");
}

TEST(EmitC, ConstantsInFile) {
  Case c = find_case("pipeline");
  const CSource inside = emit_c(c.program, host_target());
  EXPECT_EQ(inside.constants_bin, "");
  const CSource outside = emit_c(c.program, host_target(), {.header = {}, .inline_constants = 0});
  // Four floats, then four halves aligned to 32.
  EXPECT_EQ(outside.constants_bin.size(), 40u);
  EXPECT_NE(outside.source.find(outside.constants_name), std::string::npos);
  for (const Compiler& compiler : host_compilers()) {
    const Folder folder;
    folder.write("pipeline.c", outside.source);
    folder.write("pipeline.h", outside.header);
    folder.write(outside.constants_name, outside.constants_bin);
    folder.write("main.c",
                 "#include \"pipeline.h\"\n"
                 "int main(void) {\n"
                 "  static unsigned char arena[192] __attribute__((aligned(64)));\n"
                 "  static float x[4] = {10, 0, 0, 0};\n  static int32_t y[4], z[4];\n"
                 "  static uint16_t f16[4];\n"
                 "  const pipeline_run_inputs in = {1, x};\n"
                 "  const pipeline_run_outputs out = {y, z, f16};\n"
                 "  const bc_status status = pipeline_run(&in, &out, arena, sizeof arena, 0);\n"
                 "  return status != 0 || y[0] != 0x3f800000 || f16[3] != 0x7bff;\n}\n");
    for (const char* flags : {"-O2 -fPIC", "-O2 -fno-pic -no-pie"}) {
      bool ok = false;
      const std::string messages = run_command(
          fmt::format("cd {} && {} {} -Wall -Werror -o program main.c pipeline.c && ./program",
                      folder.path(), compiler.command + " " + host_target().compiler_flags, flags),
          ok);
      EXPECT_TRUE(ok) << compiler.name << " " << flags << ": " << messages;
    }
  }
}

TEST(EmitC, EqualInputGivesEqualText) {
  for (const char* name : {"pipeline", "odd_names"}) {
    const CSource a = emit_c(find_case(name).program, host_target());
    const CSource b = emit_c(find_case(name).program, host_target());
    EXPECT_EQ(a.source, b.source);
    EXPECT_EQ(a.header, b.header);
  }
}

TEST(EmitC, RefusesWhatNeedsALibrary) {
  const TargetInfo& m4 = *find_target("cortex-m4");
  for (const Case& c : rounding_cases()) EXPECT_THROW(emit_c(c.program, m4), InternalError);
}

/// A file without the options of its target is answered with those that it needs.
TEST(EmitC, NamesMissingOptions) {
  for (const auto& [name, command] : std::map<std::string, std::string>{
           {"x86-64-v3", "cc"},
           {"x86-64-v4", "cc -march=x86-64-v3"},
           {"cortex-m4", "arm-none-eabi-gcc"},
           {"cortex-a76", "aarch64-linux-gnu-gcc"},
           {"riscv32f", "riscv64-unknown-elf-gcc -march=rv32imac -mabi=ilp32 -ffreestanding"},
           {"wasm32", "clang-19 --target=wasm32"}}) {
    if (!is_installed(command.substr(0, command.find(' ')))) continue;
    const TargetInfo& target = *find_target(name);
    const Case c = statement_cases().front();
    const CSource source = emit_c(c.program, target, {.header = {.target = name}});
    const Folder folder;
    folder.write(c.program.name + ".c", source.source);
    folder.write(c.program.name + ".h", source.header);
    const std::string compile = fmt::format("cd {} && {{}} -c {}.c", folder.path(), c.program.name);
    bool ok = true;
    const std::string messages = run_command(fmt::format(fmt::runtime(compile), command), ok);
    EXPECT_FALSE(ok) << name;
    EXPECT_NE(messages.find(fmt::format("compile with {}", target.compiler_flags)), messages.npos)
        << messages;
    const std::string whole = command.substr(0, command.find(' ')) + " " + target.compiler_flags;
    const std::string rest = run_command(fmt::format(fmt::runtime(compile), whole), ok);
    EXPECT_TRUE(ok) << rest;
  }
}

/// Cases of a target: scalar ones, and vectors of its width.
std::vector<Case> cases_for(const TargetInfo& target) {
  std::vector<Case> cases;
  for (Case& c : statement_cases()) cases.push_back(std::move(c));
  for (Case& c : pair_product_cases()) cases.push_back(std::move(c));
  for (Case& c : byte_product_cases()) cases.push_back(std::move(c));
  for (Case& c : math_cases(target.has_fma && target.has_f64)) {
    const bool is_vector = c.program.name.ends_with("_4");
    if (!is_vector || target.vector_bits >= 128) cases.push_back(std::move(c));
  }
  if (target.has_rounding && target.has_fma && target.has_f64) {
    for (Case& c : rounding_cases()) {
      const bool is_vector = !c.program.name.ends_with("_1");
      if (!is_vector || target.vector_bits >= 128) cases.push_back(std::move(c));
    }
  }
  return cases;
}

std::vector<Compiler> cross_compilers(const TargetInfo& target) {
  std::vector<Compiler> compilers;
  if (target.cross_compiler.empty() || !is_installed(target.cross_compiler)) return compilers;
  compilers.push_back({target.cross_compiler, target.cross_compiler + " " + target.compiler_flags});
  // clang knows neither gcc's header folders nor rv64gcv's flags of another name.
  if (is_installed("clang-19") && target.cross_compiler != "clang-19" &&
      target.architecture != Architecture::x86_64 && !target.only_c) {
    compilers.push_back(
        {"clang-19", fmt::format("clang-19 --target={} -ffreestanding -nostdlibinc {}",
                                 target.triple, target.compiler_flags)});
  }
  return compilers;
}

/// Undefined symbols of an object that are not the compiler's own.
std::string foreign_symbols(const std::string& nm_output) {
  std::istringstream lines(nm_output);
  std::string foreign, kind, name;
  while (lines >> kind >> name) {
    const bool is_own = name.starts_with("__") || name == "memcpy" || name == "memmove" ||
                        name == "memset" || name == "_GLOBAL_OFFSET_TABLE_";
    if (!is_own) foreign += name + " ";
  }
  return foreign;
}

TEST(EmitC, EveryTargetCompilesWithoutLibm) {
  for (const TargetInfo& target : all_targets()) {
    const std::vector<Case> cases = cases_for(target);
    for (const Compiler& compiler : cross_compilers(target)) {
      const Folder folder;
      std::string files;
      for (const Case& c : cases) {
        const CSource source = emit_c(c.program, target, {.header = {.target = target.name}});
        folder.write(c.program.name + ".c", source.source);
        folder.write(c.program.name + ".h", source.header);
        files += " " + c.program.name + ".c";
      }
      bool ok = false;
      const std::string messages = run_command(
          fmt::format(
              "cd {} && {} -std=c11 -O2 -Wall -Wextra -Wconversion -Werror -c {} && llvm-nm-19 -u "
              "--format=posix *.o | awk '$2 == \"U\" {{print $2, $1}}'",
              folder.path(), compiler.command, files),
          ok);
      EXPECT_TRUE(ok) << target.name << " " << compiler.name << "\n" << messages;
      EXPECT_EQ(ok ? foreign_symbols(messages) : "", "") << target.name << " " << compiler.name;
    }
  }
}

}  // namespace
}  // namespace backcast::c_test
