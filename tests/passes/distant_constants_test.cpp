// Weights that caches do not hold: reductions in blocks and panels fetched ahead leave every value
// as it was but for the order of sums. Small caches make both happen to small convolutions.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "ir/graph/evaluator.h"
#include "ir/graph/text.h"
#include "ir/loop/interpreter.h"
#include "ir/loop/text.h"
#include "tests/onnx/case_runner.h"

namespace backcast {
namespace {

struct Conv {
  int64_t batch, rows, columns, channels, features, kernel, stride;
  bool in_blocks;  // long enough, and shared by enough tiles
  std::string name() const {
    return fmt::format("n{}_{}x{}_c{}_f{}_k{}_s{}", batch, rows, columns, channels, features,
                       kernel, stride);
  }
};

const Conv kConvs[] = {
    {1, 7, 7, 32, 40, 3, 1, true},   {1, 14, 14, 48, 17, 3, 2, true},
    {2, 9, 13, 320, 33, 1, 1, true}, {1, 17, 19, 128, 16, 3, 1, true},
    {1, 8, 8, 31, 24, 3, 1, false},  {3, 5, 3, 1, 7, 3, 1, false},
    {1, 1, 1, 256, 64, 1, 1, false}, {1, 4, 4, 1, 1, 1, 1, false},
    {0, 7, 7, 64, 16, 3, 1, false},
};

std::string numbers(int64_t count, std::mt19937& random) {
  std::uniform_real_distribution<double> real(-1, 1);
  std::string text;
  for (int64_t i = 0; i < count; ++i) {
    text += fmt::format("{}{}", i ? "," : "", static_cast<float>(real(random)));
  }
  return text;
}

/// relu(conv(x, w) + r), channels last.
Module module_of(const Conv& c, const std::string& type) {
  const int64_t pad = c.kernel / 2;
  const auto extent = [&](int64_t in) { return (in + 2 * pad - c.kernel) / c.stride + 1; };
  const std::string out =
      fmt::format("{}[{},{},{},{}]", type, c.batch, extent(c.rows), extent(c.columns), c.features);
  std::mt19937 random(7);
  return parse_module(fmt::format(
      R"(
func @main(%x: {0}[{1},{2},{3},{4}], %r: {5}) -> {5} {{
  %w = constant {{value={0}[{6},{4},{7},{7}] [{8}]}}
  %c = conv %x, %w {{input_feature=3, input_spatial=[1,2], kernel_spatial=[2,3], output_feature=3, output_spatial=[1,2], strides=[{9},{9}], pad_low=[{10},{10}], pad_high=[{10},{10}], input_dilation=[1,1], kernel_dilation=[1,1]}}
  %s = add %c, %r
  %y = relu %s
  return %y
}})",
      type, c.batch, c.rows, c.columns, c.channels, out, c.features, c.kernel,
      numbers(c.features * c.channels * c.kernel * c.kernel, random), c.stride, pad));
}

std::vector<Literal> inputs_of(const Module& module) {
  std::mt19937 random(11);
  std::uniform_real_distribution<double> real(-1, 1);
  std::vector<Literal> inputs;
  const Function& main = module.function("main");
  for (const ValueId id : main.params) {
    const TensorType& type = main.type(id).tensor();
    std::vector<int64_t> shape;
    for (const Dim& dim : type.shape) shape.push_back(dim.constant());
    std::vector<double> values(static_cast<size_t>(type.element_count().constant()));
    for (double& value : values) value = real(random);
    inputs.push_back(Literal::from_doubles(type.element, shape, values));
  }
  return inputs;
}

TargetInfo small_caches(TargetInfo target) {
  target.l1_bytes = 16 << 10;
  target.l2_bytes = 256;
  return target;
}

double error_of(const Literal& actual, const Literal& expected) {
  EXPECT_EQ(actual.shape(), expected.shape());
  double worst = 0, largest = 1e-30;
  for (int64_t i = 0; i < expected.element_count(); ++i) {
    largest = std::max(largest, std::fabs(expected.as_double(i)));
    worst = std::max(worst, std::fabs(actual.as_double(i) - expected.as_double(i)));
  }
  return worst / largest;
}

class DistantConstants : public testing::TestWithParam<Conv> {};

TEST_P(DistantConstants, ExactInDouble) {
  const Module module = module_of(GetParam(), "f64");
  const std::vector<Literal> inputs = inputs_of(module);
  const Literal expected = evaluate_main(module, inputs).front();
  for (const char* target : {"x86-64-v3", "x86-64-v4"}) {
    PipelineOptions options;
    options.round_trip = true;
    const PipelineResult result = run_pipeline(module, small_caches(*find_target(target)), options);
    const std::string text = loop::print(result.program);
    EXPECT_EQ(text.find("_block in 0 ..") != std::string::npos, GetParam().in_blocks) << target;
    if (GetParam().in_blocks) {
      EXPECT_NE(text.find("prefetch "), std::string::npos) << target;
    }
    const Literal found = loop::interpret(result.program, "run", inputs).front();
    EXPECT_LT(error_of(found, expected), 1e-12) << target;
  }
}

TEST_P(DistantConstants, CompiledToTheBit) {
  const Module module = module_of(GetParam(), "f32");
  NodeCase one;
  one.name = "conv";
  const std::vector<Literal> inputs = inputs_of(module);
  one.sets.push_back({"set", inputs, evaluate_main(module, inputs)});
  one.model.model_file = one.name;
  one.model.target = small_caches(resolve_target("native"));
  PipelineOptions options;
  options.name = one.name;
  one.model.result = run_pipeline(module, one.model.target, options);
  one.model.abi = abi_of(one.model.result.program);
  const auto c_results = run_c_batch({&one});
  const CaseResult llvm = run_llvm(one, one.sets[0]);
  ASSERT_EQ(llvm.error, "");
  ASSERT_EQ(c_results[0][0].error, "");
  EXPECT_LT(error_of(llvm.outputs[0], one.sets[0].outputs[0]), 5e-6);
  EXPECT_EQ(llvm.outputs[0], c_results[0][0].outputs[0]);
}

INSTANTIATE_TEST_SUITE_P(Convolutions, DistantConstants, testing::ValuesIn(kConvs),
                         [](const auto& info) { return info.param.name(); });

TEST(NearConstants, StayAsTheyAre) {
  const Module module = module_of(kConvs[0], "f32");
  const std::string text = loop::print(run_pipeline(module, *find_target("x86-64-v4"), {}).program);
  EXPECT_EQ(text.find("prefetch "), std::string::npos);
  EXPECT_EQ(text.find("_block in 0 .."), std::string::npos);
}

}  // namespace
}  // namespace backcast
