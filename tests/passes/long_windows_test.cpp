// Windows of many taps: tiles with borders in which taps are loops, for any padding, stride and
// group, weights constant or not, and gradients of such kernels with few features.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

#include "ir/graph/text.h"
#include "ir/loop/interpreter.h"
#include "ir/loop/text.h"
#include "tests/passes/random_convolution.h"

namespace backcast {
namespace {

struct Window {
  int64_t rows, columns, channels, features, groups, height, width, stride, low, high;
  bool constant;
  bool tiled = true;  // on AVX2: the axis is longer than its window, and that is no more than 64

  std::string name() const {
    return fmt::format("x{}x{}_c{}_f{}_g{}_k{}x{}_s{}_p{}_{}{}", rows, columns, channels, features,
                       groups, height, width, stride, low, high, constant ? "_constant" : "");
  }
};

const Window kWindows[] = {
    {20, 23, 3, 16, 1, 9, 9, 1, 4, 4, true},         {20, 23, 3, 16, 1, 9, 9, 1, 4, 4, false},
    {29, 31, 3, 24, 1, 11, 11, 4, 2, 2, true},       {17, 40, 16, 3, 1, 9, 9, 1, 8, 8, false},
    {1, 61, 4, 8, 1, 1, 25, 1, 12, 12, true},        {1, 97, 2, 17, 1, 1, 64, 3, 40, 11, true},
    {13, 31, 16, 16, 16, 3, 13, 1, 6, 5, true},      {11, 19, 8, 8, 8, 13, 9, 2, 7, 0, false},
    {1, 80, 5, 7, 1, 1, 65, 1, 32, 32, true, false}, {9, 9, 4, 8, 1, 9, 9, 1, 4, 4, true, false},
};

Module module_of(const Window& w, const std::string& type) {
  const auto extent = [&](int64_t in, int64_t taps) {
    return (in + (taps > 1 ? w.low + w.high : 0) - taps) / w.stride + 1;
  };
  const int64_t inputs = w.channels / w.groups;
  std::mt19937 random(5);
  const std::string x = fmt::format("{}[2,{},{},{}]", type, w.rows, w.columns, w.channels);
  const std::string k = fmt::format("{}[{},{},{},{}]", type, w.height, w.width, inputs, w.features);
  const std::string y = fmt::format("{}[2,{},{},{}]", type, extent(w.rows, w.height),
                                    extent(w.columns, w.width), w.features);
  const std::string numbers =
      w.constant ? random_numbers(w.height * w.width * inputs * w.features, random) : "";
  return parse_module(fmt::format(
      R"(
func @main(%x: {0}{1}) -> {2} {{
  {3}
  %y = conv %x, %k {{input_feature=3, input_spatial=[1,2], kernel_spatial=[0,1], kernel_input=2, kernel_output=3, output_feature=3, output_spatial=[1,2], strides=[{4},{4}], pad_low=[{5},{6}], pad_high=[{7},{8}], input_dilation=[1,1], kernel_dilation=[1,1], feature_groups={9}}}
  return %y
}})",
      x, w.constant ? "" : ", %k: " + k, y,
      w.constant ? fmt::format("%k = constant {{value={} [{}]}}", k, numbers) : "", w.stride,
      w.height > 1 ? w.low : 0, w.width > 1 ? w.low : 0, w.height > 1 ? w.high : 0,
      w.width > 1 ? w.high : 0, w.groups));
}

class LongWindows : public testing::TestWithParam<Window> {};

TEST_P(LongWindows, ExactInDouble) {
  const Module module = module_of(GetParam(), "f64");
  const std::vector<Literal> inputs = random_inputs(module);
  const Literal expected = evaluate_main(module, inputs).front();
  for (const char* target : {"x86-64-v3", "x86-64-v4", "cortex-a76", "cortex-m4"}) {
    PipelineOptions options;
    options.round_trip = true;
    const PipelineResult result = run_pipeline(module, *find_target(target), options);
    EXPECT_LT(error_of(loop::interpret(result.program, "run", inputs).front(), expected), 1e-12)
        << target;
  }
}

/// Several sums at once, and code that does not grow with the taps.
TEST_P(LongWindows, TilesAndLoops) {
  const Module module = module_of(GetParam(), "f32");
  const std::string text = loop::print(run_pipeline(module, *find_target("x86-64-v3"), {}).program);
  EXPECT_EQ(text.find("acc[3]") != std::string::npos, GetParam().tiled) << text;
  EXPECT_LT(text.size(), 120'000u);
}

TEST_P(LongWindows, CompiledToTheBit) {
  expect_close_and_equal(
      compiled_case(module_of(GetParam(), "f32"), "window", resolve_target("native"), {}), 5e-6);
}

INSTANTIATE_TEST_SUITE_P(Convolutions, LongWindows, testing::ValuesIn(kWindows),
                         [](const auto& info) { return info.param.name(); });

}  // namespace
}  // namespace backcast
