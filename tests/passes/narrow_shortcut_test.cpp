// A convolution plus a shortcut of fewer channels, which is padded with zeros: results take one
// side of a condition on their channel.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

#include "ir/graph/text.h"
#include "ir/loop/interpreter.h"
#include "tests/passes/random_convolution.h"

namespace backcast {
namespace {

struct Narrow {
  int64_t rows, columns, channels, features, shortcut, kernel;
  std::string name() const {
    return fmt::format("{}x{}_c{}_f{}_s{}_k{}", rows, columns, channels, features, shortcut,
                       kernel);
  }
};

const Narrow kNarrow[] = {
    {16, 16, 32, 64, 32, 1},  // more sums than a panel holds
    {16, 16, 8, 40, 17, 3},  {7, 5, 16, 48, 16, 3}, {5, 1, 3, 7, 1, 1}, {9, 8, 4, 33, 32, 1},
};

Module shortcut_module(const Narrow& n, const std::string& type) {
  std::mt19937 random(5);
  const std::string out = fmt::format("{}[1,{},{},{}]", type, n.rows, n.columns, n.features);
  return parse_module(fmt::format(
      R"(
entry "run" @main
func @main(%x: {0}[1,{1},{2},{3}], %r: {0}[1,{1},{2},{5}]) -> {9} {{
  %w = constant {{value={0}[{4},{3},{6},{6}] [{7}]}}
  %zero = constant {{value={0}[] 0}}
  %c = conv %x, %w {{input_feature=3, input_spatial=[1,2], kernel_spatial=[2,3], output_feature=3, output_spatial=[1,2], strides=[1,1], pad_low=[{8},{8}], pad_high=[{8},{8}], input_dilation=[1,1], kernel_dilation=[1,1]}}
  %p = pad %r, %zero {{low=[0,0,0,0], high=[0,0,0,{10}], interior=[0,0,0,0]}}
  %s = add %p, %c
  %y = relu %s
  return %y
}})",
      type, n.rows, n.columns, n.channels, n.features, n.shortcut, n.kernel,
      random_numbers(n.features * n.channels * n.kernel * n.kernel, random), n.kernel / 2, out,
      n.features - n.shortcut));
}

class NarrowShortcut : public testing::TestWithParam<Narrow> {};

TEST_P(NarrowShortcut, ExactInDouble) {
  const Module module = shortcut_module(GetParam(), "f64");
  const std::vector<Literal> inputs = random_inputs(module);
  const Literal expected = evaluate_main(module, inputs).front();
  for (const char* target : {"x86-64-v3", "x86-64-v4", "aarch64"}) {
    PipelineOptions options;
    options.round_trip = true;
    const PipelineResult result = run_pipeline(module, *find_target(target), options);
    const Literal found = loop::interpret(result.program, "run", inputs).front();
    EXPECT_LT(error_of(found, expected), 1e-12) << target;
  }
}

TEST_P(NarrowShortcut, CompiledToTheBit) {
  expect_close_and_equal(
      compiled_case(shortcut_module(GetParam(), "f32"), "shortcut", resolve_target("native"), {}),
      5e-6);
}

INSTANTIATE_TEST_SUITE_P(Shapes, NarrowShortcut, testing::ValuesIn(kNarrow),
                         [](const auto& info) { return info.param.name(); });

}  // namespace
}  // namespace backcast
