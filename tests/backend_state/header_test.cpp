// Headers of training libraries, judged like the hand-written examples; C that uses one.
#include "backend/library/header.h"

#include <gtest/gtest.h>

#include <fstream>

#include "backend/c/emit.h"
#include "backend/library/report.h"
#include "tests/backend_c/compiled.h"
#include "tests/backend_state/built_library.h"

namespace backcast::state_test {
namespace {

const HeaderOptions kOptions = {"net.onnx", "cortex-m4",
                                "0.1.0",    512,
                                false,      "training with squared error and momentum, batch 4"};

TEST(TrainingHeader, PassesTheJudge) {
  const c_test::Folder folder;
  folder.write("net.h", header_text(abi_of(training_program("cortex-m4")), kOptions));
  bool ok = false;
  const std::string output = c_test::run_command(
      "python3 " SOURCE_DIR "/tests/headers/check_header.py " + folder.path() + "/net.h", ok);
  EXPECT_TRUE(ok) << output;
}

TEST(TrainingHeader, SaysWhatTheStateIs) {
  const loop::Program program = training_program("cortex-m4");
  const std::string text = header_text(abi_of(program), kOptions);
  for (const char* line :
       {"#define NET_STATE_BYTES 88\n", "#define NET_STATE_ALIGN 8\n", "#define NET_STATE_ABI 1\n",
        "#define NET_PARAMETER_COUNT 3 /*", "#define NET_BATCH 4\n", "#define NET_ACCUMULATE 2\n",
        "const int32_t *tt; /* i32[4], each 0..9, or -1 */", "/* f32[4], or null */",
        "bc_status net_init(void *state, size_t state_bytes, uint64_t seed);\n",
        "bc_status net_run(const void *state, const net_run_inputs *in,",
        "bc_status net_train_step(void *state, const net_train_step_inputs *in,",
        "bc_status net_apply(void *state, void *arena, size_t arena_bytes, const bc_context",
        "bc_status net_set_learning_rate(void *state, float rate);\n",
        "bc_status net_get_gradients(const void *state, float *flat);\n",
        "bc_status net_load(void *state, const bc_reader *reader);\n"}) {
    EXPECT_NE(text.find(line), std::string::npos) << line << "\n" << text;
  }
  EXPECT_EQ(text.find("net_apply_inputs"), std::string::npos);
}

TEST(TrainingHeader, HashIsTheSameOnEveryTargetButNotForEveryModel) {
  loop::Program program = training_program("cortex-m4");
  const uint64_t hash = abi_of(program).model_hash;
  EXPECT_EQ(hash, abi_of(training_program("x86-64-v3")).model_hash);
  program.buffers[0].value = Literal::from_doubles(ElementType::f32, {2}, {0.5, -0.5});
  EXPECT_NE(hash, abi_of(program).model_hash);
  // A hash of the model's constants stands for them, whatever a target makes of them.
  loop::Program packed = training_program("cortex-m4");
  program.model_hash = packed.model_hash = 42;
  packed.buffers[8].value = Literal::from_doubles(ElementType::f32, {2}, {2, 1});
  EXPECT_EQ(abi_of(program).model_hash, abi_of(packed).model_hash);
  packed.buffers[4].role = StateRole::slot;
  EXPECT_NE(abi_of(program).model_hash, abi_of(packed).model_hash);
  packed = program;
  packed.model_hash = 43;
  EXPECT_NE(abi_of(program).model_hash, abi_of(packed).model_hash);
}

TEST(TrainingAbi, NamesVariablesAsTheModelDoes) {
  loop::Program program = training_program("cortex-m4");
  // FNV-1a of "w"; then of "a", a published value of the function.
  EXPECT_EQ(abi_of(program).state.variables[0].name_hash, 0xaf63ea4c86020456u);
  program.buffers[0].loc.node = "a";
  EXPECT_EQ(abi_of(program).state.variables[0].name_hash, 0xaf63dc4c8601ec8cu);
}

TEST(TrainingReport, CountsTheState) {
  const Report report = report_of(training_program("cortex-m4"), {"net.onnx", "cortex-m4", "0.1"});
  EXPECT_EQ(report.state_bytes, 88);
  EXPECT_EQ(report.parameters, 3 + 2) << "trained ones and constants";
  EXPECT_NE(report_text(report).find("state"), std::string::npos);
  EXPECT_NE(report_json(report).find("\"state_bytes\": 88"), std::string::npos);
}

/// A training as a caller writes it, against the header.
constexpr char kMain[] = R"(#include "net.h"
_Alignas(NET_STATE_ALIGN) static unsigned char state[NET_STATE_BYTES];
_Alignas(NET_ARENA_ALIGN) static unsigned char arena[NET_ARENA_BYTES + 1];
int main(void) {
  float flat[NET_PARAMETER_COUNT], x[8] = {1, 0, 0, 1, 2, -1, 0.5f, 0.5f}, loss[2];
  int32_t labels[NET_BATCH] = {1, 0, 1, -1};
  if (net_init(state, sizeof state, 1) != BC_OK) return 1;
  if (net_get_parameters(state, flat) != BC_OK) return 2;
  if (flat[0] != 0.5f || flat[1] != -0.25f || flat[2] != 0.125f) return 3;
  for (int i = 0; i < 2; ++i) {
    net_train_step_inputs in = {x, labels};
    net_train_step_outputs out = {&loss[i], NULL, NULL};
    if (net_train_step(state, &in, &out, arena, NET_ARENA_BYTES, NULL) != BC_OK) return 4;
    if (net_apply(state, arena, NET_ARENA_BYTES, NULL) != BC_OK) return 5;
  }
  return loss[1] < loss[0] ? 0 : 6;
}
)";

/// Compiles the program with gcc and runs it.
void expect_main_runs(const CSource& source, const std::string& flags) {
  const c_test::Folder folder;
  folder.write("net.c", source.source);
  folder.write("net.h", source.header);
  folder.write("net.constants.bin", source.constants_bin);
  folder.write("main.c", kMain);
  bool ok = false;
  const std::string output = c_test::run_command(
      "cd " + folder.path() + " && gcc -std=c11 -Wall -Wextra -Werror " + flags + " " +
          c_test::host_target().compiler_flags + " main.c net.c -o main && ./main",
      ok);
  EXPECT_TRUE(ok) << output;
}

TEST(TrainingC, TakesInitialValuesFromAFile) {
  if (!c_test::is_installed("gcc")) GTEST_SKIP() << "gcc is not installed";
  const CSource source = emit_c(training_program(), c_test::host_target(),
                                {.header = kOptions, .inline_constants = 0});
  EXPECT_FALSE(source.constants_bin.empty());
  expect_main_runs(source, "-O2");
}

TEST(TrainingC, IsCleanUnderSanitizers) {
  if (!c_test::is_installed("gcc")) GTEST_SKIP() << "gcc is not installed";
  const CSource source = emit_c(training_program(), c_test::host_target(), {.header = kOptions});
  expect_main_runs(source, "-O1 -fsanitize=address,undefined -fno-sanitize-recover=all");
}

}  // namespace
}  // namespace backcast::state_test
