// Minimal filtering is exact in real numbers: in double, what the transformed kernels compute is
// what the evaluator computes of the convolution, for every shape and border; in single precision
// the difference stays within the bound, and C and LLVM agree to the bit.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

#include "ir/graph/text.h"
#include "ir/loop/interpreter.h"
#include "ir/loop/text.h"
#include "tests/passes/random_convolution.h"

namespace backcast {
namespace {

struct Conv {
  int64_t batch, rows, columns, channels, features;
  int64_t pads[4];  // low rows, low columns, high rows, high columns
  std::string name() const {
    return fmt::format("n{}_{}x{}_c{}_f{}_p{}{}{}{}", batch, rows, columns, channels, features,
                       pads[0], pads[1], pads[2], pads[3]);
  }
};

const Conv kConvs[] = {
    {1, 8, 8, 16, 16, {1, 1, 1, 1}},  {1, 5, 7, 3, 17, {1, 1, 1, 1}},
    {3, 6, 11, 17, 3, {0, 0, 0, 0}},  {1, 13, 4, 1, 5, {1, 0, 0, 1}},
    {3, 9, 5, 5, 1, {2, 1, 1, 2}},    {1, 4, 4, 1, 1, {1, 1, 1, 1}},
    {1, 2, 3, 64, 7, {1, 1, 1, 1}},   {1, 17, 19, 2, 33, {1, 1, 0, 0}},
    {2, 12, 12, 8, 64, {1, 1, 1, 1}}, {1, 7, 7, 31, 24, {0, 1, 2, 0}},
};

/// relu(conv(x, w) + r), channels last.
Module module_of(const Conv& c, const std::string& type, int64_t stride = 1) {
  const int64_t rows = (c.rows + c.pads[0] + c.pads[2] - 3) / stride + 1;
  const int64_t columns = (c.columns + c.pads[1] + c.pads[3] - 3) / stride + 1;
  const std::string out = fmt::format("{}[{},{},{},{}]", type, c.batch, rows, columns, c.features);
  std::mt19937 random(7);
  return parse_module(fmt::format(
      R"(
func @main(%x: {0}[{1},{2},{3},{4}], %r: {5}) -> {5} {{
  %w = constant {{value={0}[{6},{4},3,3] [{7}]}}
  %c = conv %x, %w {{input_feature=3, input_spatial=[1,2], kernel_spatial=[2,3], output_feature=3, output_spatial=[1,2], strides=[{12},{12}], pad_low=[{8},{9}], pad_high=[{10},{11}], input_dilation=[1,1], kernel_dilation=[1,1]}}
  %s = add %c, %r
  %y = relu %s
  return %y
}})",
      type, c.batch, c.rows, c.columns, c.channels, out, c.features,
      random_numbers(c.features * c.channels * 9, random), c.pads[0], c.pads[1], c.pads[2],
      c.pads[3], stride));
}

PipelineResult compile(const Module& module, const TargetInfo& target, WinogradMode mode,
                       const std::string& stop = {}) {
  PipelineOptions options;
  options.round_trip = true;
  options.passes.winograd = mode;
  options.stop_after = stop;
  return run_pipeline(module, target, options);
}

class Shapes : public testing::TestWithParam<Conv> {};

TEST_P(Shapes, ExactInDouble) {
  const Module module = module_of(GetParam(), "f64");
  const std::vector<Literal> inputs = random_inputs(module);
  const Literal expected = evaluate_main(module, inputs).front();
  for (const char* target : {"x86-64-v3", "x86-64-v4", "cortex-m4"}) {
    for (const WinogradMode mode : {WinogradMode::f2, WinogradMode::f4}) {
      for (const char* stop : {"winograd", "schedule", ""}) {
        const PipelineResult result = compile(module, *find_target(target), mode, stop);
        ASSERT_EQ(result.notes.winograd_layers.size(), 1u);
        EXPECT_EQ(result.notes.winograd_layers[0].tile, mode == WinogradMode::f2 ? 2 : 4);
        const Literal found = loop::interpret(result.program, "run", inputs).front();
        EXPECT_LT(error_of(found, expected), 1e-12) << target << " after " << stop;
      }
    }
  }
}

TEST_P(Shapes, CompiledWithinTheBoundAndToTheBit) {
  const Module module = module_of(GetParam(), "f32");
  for (const WinogradMode mode : {WinogradMode::f2, WinogradMode::f4}) {
    PipelineOptions options;
    options.passes.winograd = mode;
    const NodeCase one = compiled_case(module, "conv", resolve_target("native"), options);
    EXPECT_GT(one.model.result.notes.winograd_layers.at(0).tile, 0);
    expect_close_and_equal(one, kWinogradBound);
  }
}

INSTANTIATE_TEST_SUITE_P(Winograd, Shapes, testing::ValuesIn(kConvs),
                         [](const auto& info) { return info.param.name(); });

TEST(Winograd, MeasuresItsErrorWithinTheBound) {
  const Module module = module_of({1, 8, 8, 64, 64, {1, 1, 1, 1}}, "f32");
  for (const WinogradMode mode : {WinogradMode::f2, WinogradMode::f4}) {
    const WinogradLayer layer =
        compile(module, *find_target("x86-64-v4"), mode, "winograd").notes.winograd_layers.at(0);
    EXPECT_GT(layer.error, 0);
    EXPECT_LT(layer.error, kWinogradBound);
    EXPECT_GT(layer.direct_error, 0);
  }
}

TEST(Winograd, LeavesStridesAlone) {
  const Module module = module_of({1, 8, 8, 16, 16, {1, 1, 1, 1}}, "f32", 2);
  EXPECT_TRUE(compile(module, *find_target("x86-64-v4"), WinogradMode::on, "winograd")
                  .notes.winograd_layers.empty());
}

TEST(Winograd, OffIsTheProgramWithoutThePass) {
  const Module module = module_of({1, 8, 8, 16, 16, {1, 1, 1, 1}}, "f32");
  const TargetInfo& target = *find_target("x86-64-v4");
  EXPECT_TRUE(loop::equal(compile(module, target, WinogradMode::off, "winograd").program,
                          compile(module, target, WinogradMode::off, "update_in_place").program));
}

TEST(Winograd, ChoosesByTheModel) {
  const TargetInfo& target = *find_target("x86-64-v4");
  const auto tile = [&](const Conv& c) {
    return compile(module_of(c, "f32"), target, WinogradMode::automatic, "winograd")
        .notes.winograd_layers.at(0)
        .tile;
  };
  EXPECT_GT(tile({1, 32, 32, 16, 16, {1, 1, 1, 1}}), 0);
  EXPECT_EQ(tile({1, 32, 32, 1, 1, {1, 1, 1, 1}}), 0);
}

TEST(Winograd, NeverRaisesTheArenaOfAMicrocontroller) {
  const TargetInfo& target = *find_target("cortex-m4");
  const Module module = module_of({1, 16, 16, 16, 16, {1, 1, 1, 1}}, "f32");
  const PipelineResult direct = compile(module, target, WinogradMode::off);
  const PipelineResult automatic = compile(module, target, WinogradMode::automatic);
  EXPECT_EQ(automatic.program.arena_bytes, direct.program.arena_bytes);
  EXPECT_GT(compile(module, target, WinogradMode::on).program.arena_bytes,
            direct.program.arena_bytes);
}

}  // namespace
}  // namespace backcast
