// Operations that are instructions on some machines, on emulated ones: C and LLVM emission against
// the interpreter, bit for bit.
#include <gtest/gtest.h>

#include <array>

#include "driver/device.h"
#include "ir/graph/error.h"
#include "ir/loop/interpreter.h"
#include "passes/schedule/schedule.h"
#include "tests/backend_c/compiled.h"

namespace backcast::c_test {
namespace {

class EveryDevice : public testing::TestWithParam<const char*> {};

/// An image with one library per case; empty where the target's tools are missing.
std::unique_ptr<DeviceImage> image_of(const std::vector<CompiledModel>& models, Emit emit) {
  std::vector<const CompiledModel*> pointers;
  for (const CompiledModel& model : models) pointers.push_back(&model);
  try {
    return std::make_unique<DeviceImage>(pointers, emit);
  } catch (const CompileError& error) {
    std::cout << error.what() << "\n";
    return nullptr;
  }
}

TEST_P(EveryDevice, InstructionsOfSome) {
  std::vector<Case> cases = pair_product_cases();
  for (Case& c : byte_product_cases()) cases.push_back(std::move(c));
  for (Case& c : nearest_cases(std::array{1, 4})) cases.push_back(std::move(c));
  for (Case& c : half_cases(std::array{1, 4})) cases.push_back(std::move(c));
  const TargetInfo& target = *find_target(GetParam());
  if (target.has_rounding && target.has_fma) {
    for (Case& c : register_cases()) cases.push_back(std::move(c));
  }
  std::vector<CompiledModel> models(cases.size());
  std::vector<DeviceCall> calls(cases.size());
  for (size_t i = 0; i < cases.size(); ++i) {
    models[i].target = target;
    models[i].result.program = legalize(cases[i].program, models[i].target);
    models[i].result.lowered = true;
    models[i].abi = abi_of(cases[i].program);
    models[i].model_file = cases[i].program.name;
    calls[i].model = i;
    calls[i].inputs = cases[i].inputs;
  }
  for (const Emit emit : {Emit::lib, Emit::c}) {
    if (emit == Emit::lib && target.only_c) continue;
    const std::unique_ptr<DeviceImage> image = image_of(models, emit);
    if (image == nullptr) GTEST_SKIP() << "tools are missing";
    const std::vector<DeviceReply> replies = image->run(calls);
    ASSERT_EQ(replies.size(), cases.size());
    for (size_t i = 0; i < cases.size(); ++i) {
      const loop::Program& program = cases[i].program;
      const std::vector<Literal> expected =
          loop::interpret(program, program.entries[0].name, cases[i].inputs);
      EXPECT_EQ(replies[i].status, 0);
      EXPECT_EQ(replies[i].findings, "");
      ASSERT_EQ(replies[i].outputs.size(), expected.size());
      for (size_t k = 0; k < expected.size(); ++k) {
        EXPECT_EQ(difference(replies[i].outputs[k], expected[k]), "")
            << program.name << (emit == Emit::c ? ", C, output " : ", LLVM, output ") << k;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, EveryDevice,
                         testing::Values("cortex-m0", "cortex-m3", "cortex-m4", "cortex-m33",
                                         "cortex-m55", "cortex-m55-nomve", "armv7hf", "armv7-neon",
                                         "aarch64", "aarch64-i8mm", "cortex-a76", "riscv32",
                                         "riscv32f", "riscv64", "esp32", "wasm32"),
                         [](const testing::TestParamInfo<const char*>& info) {
                           std::string name = info.param;
                           for (char& c : name) c = c == '-' ? '_' : c;
                           return name;
                         });

}  // namespace
}  // namespace backcast::c_test
