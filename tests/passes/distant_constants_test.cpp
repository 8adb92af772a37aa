// What caches do not hold: reductions in blocks, panels of weights and operands fetched ahead leave
// every value as it was but for the order of sums. Small caches make all happen to small shapes.
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
  ConvShape shape;
  bool in_blocks;  // long enough, and shared by enough tiles
};

const Conv kConvs[] = {
    {{1, 7, 7, 32, 40, 3, 1}, true},   {{1, 14, 14, 48, 17, 3, 2}, true},
    {{2, 9, 13, 384, 33, 1, 1}, true}, {{1, 17, 19, 128, 16, 3, 1}, true},
    {{1, 8, 8, 31, 24, 3, 1}, false},  {{3, 5, 3, 1, 7, 3, 1}, false},
    {{1, 1, 1, 256, 64, 1, 1}, false}, {{1, 4, 4, 1, 1, 1, 1}, false},
    {{0, 7, 7, 64, 16, 3, 1}, false},
};

TargetInfo small_caches(TargetInfo target) {
  target.l1_bytes = 16 << 10;
  target.l2_bytes = 256;
  return target;
}

class DistantConstants : public testing::TestWithParam<Conv> {};

TEST_P(DistantConstants, ExactInDouble) {
  const Module module = residual_convolution(GetParam().shape, "f64");
  const std::vector<Literal> inputs = random_inputs(module);
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
  const TargetInfo target = small_caches(resolve_target("native"));
  expect_close_and_equal(
      compiled_case(residual_convolution(GetParam().shape, "f32"), "conv", target, {}), 5e-6);
}

INSTANTIATE_TEST_SUITE_P(Convolutions, DistantConstants, testing::ValuesIn(kConvs),
                         [](const auto& info) { return info.param.shape.name(); });

// Dense layers over a matrix that no cache holds, nor the other operand; run time may tell how many
// rows there are.
struct Dense {
  int64_t rows, sum, columns;
  int64_t most;  // rows where these are symbolic, or 0
  bool in_groups;
};

const Dense kDense[] = {
    {45, 512, 128, 0, true},  {45, 512, 128, 50, true}, {7, 512, 128, 50, true},
    {50, 768, 192, 50, true}, {33, 512, 144, 0, true},  {45, 512, 72, 0, false},
    {45, 64, 128, 45, false}, {1, 512, 128, 0, false},  {64, 528, 256, 64, true},
};

class DistantDense : public testing::TestWithParam<Dense> {
 protected:
  static Module module_in(const std::string& type) {
    const Dense& d = GetParam();
    std::mt19937 random(7);
    const std::string symbol = d.most > 0 ? fmt::format("symbol M in 0..{}", d.most) : "";
    return parse_module(fmt::format(
        R"({0}
entry "run" @main
func @main(%x: {1}[{2},{3}]) -> {1}[{2},{4}] {{
  %w = constant {{value={1}[{3},{4}] [{5}]}}
  %p = dot_general %x, %w {{lhs_contract=[1], rhs_contract=[0]}}
  %y = relu %p
  return %y
}})",
        symbol, type, d.most > 0 ? "M" : fmt::format("{}", d.rows), d.sum, d.columns,
        random_numbers(d.sum * d.columns, random)));
  }

  static TargetInfo without_caches(TargetInfo target) {
    target.l1_bytes = 16 << 10;
    target.l2_bytes = 96 << 10;
    return target;
  }
};

TEST_P(DistantDense, ExactInDoubleAndSharedOut) {
  const Dense& d = GetParam();
  const Module module = module_in("f64");
  const std::vector<Literal> inputs = random_inputs(module, {{"M", d.rows}});
  TargetInfo target = without_caches(*find_target("x86-64-v4"));
  target.parallel_grain = 1;
  PipelineOptions options;
  options.round_trip = true;
  const PipelineResult result = run_pipeline(module, target, options);
  const std::string text = loop::print(result.program);
  EXPECT_EQ(text.find("n1_block in range_begin ..") != std::string::npos, d.in_groups) << text;
  EXPECT_LT(error_of(loop::interpret(result.program, "run", inputs).front(),
                     evaluate_main(module, inputs).front()),
            1e-12);
}

TEST_P(DistantDense, CompiledToTheBit) {
  const TargetInfo target = without_caches(resolve_target("native"));
  expect_close_and_equal(
      compiled_case(module_in("f32"), "dense", target, {}, {{"M", GetParam().rows}}), 5e-6);
}

INSTANTIATE_TEST_SUITE_P(Layers, DistantDense, testing::ValuesIn(kDense), [](const auto& info) {
  const Dense& d = info.param;
  return fmt::format("m{}_k{}_n{}_of{}", d.rows, d.sum, d.columns, d.most);
});

// What products read and write across their order is asked for ahead, which changes nothing.
struct Product {
  int64_t sum, rows, columns;
  bool asks;
};

const Product kProducts[] = {
    {64, 37, 48, true},  {67, 129, 64, true}, {128, 256, 40, true}, {41, 8, 256, true},
    {31, 64, 64, false}, {1, 5, 7, false},    {64, 64, 1, false},   {0, 64, 64, false},
};

class AcrossTheSum : public testing::TestWithParam<Product> {};

TEST_P(AcrossTheSum, EqualWithRequests) {
  const Product& p = GetParam();
  const auto module_in = [&](const std::string& type) {
    return parse_module(fmt::format(R"(
func @main(%x: {0}[{1},{2}], %y: {0}[{1},{3}], %w: {0}[{2},{3}]) -> {0}[{2},{3}] {{
  %p = dot_general %x, %y {{lhs_contract=[0], rhs_contract=[0]}}
  %z = add %p, %w
  return %z
}})",
                                    type, p.sum, p.rows, p.columns));
  };
  const Module doubles = module_in("f64");
  const std::vector<Literal> inputs = random_inputs(doubles);
  const Literal expected = evaluate_main(doubles, inputs).front();
  TargetInfo target = small_caches(*find_target("x86-64-v4"));
  target.l1_bytes = 1 << 10;
  PipelineOptions options;
  options.round_trip = true;
  const PipelineResult result = run_pipeline(doubles, target, options);
  EXPECT_EQ(loop::print(result.program).find("] near") != std::string::npos, p.asks);
  EXPECT_LT(error_of(loop::interpret(result.program, "run", inputs).front(), expected), 1e-12);

  TargetInfo native = resolve_target("native");
  native.l1_bytes = native.l2_bytes = 1 << 10;
  expect_close_and_equal(compiled_case(module_in("f32"), "product", native, {}), 5e-6);
}

INSTANTIATE_TEST_SUITE_P(Products, AcrossTheSum, testing::ValuesIn(kProducts),
                         [](const auto& info) {
                           return fmt::format("k{}_m{}_n{}", info.param.sum, info.param.rows,
                                              info.param.columns);
                         });

// Gradients of kernels, whose operands both lie far away: totals wait while parts of them are near.
struct Gradient {
  int64_t batch, rows, columns, channels, features, height, width, stride;
  bool in_blocks;
};

const Gradient kGradients[] = {
    {4, 24, 24, 8, 16, 3, 3, 2, true},
    {2, 15, 16, 8, 24, 3, 3, 2, true},
    {3, 24, 24, 32, 32, 1, 1, 1, true},
    {3, 18, 16, 8, 16, 3, 3, 1, true},
    {5, 24, 16, 8, 18, 3, 3, 2, true},
    {8, 49, 16, 1, 32, 5, 5, 2, true},
    // Guards that a tile's borders decide.
    {8, 49, 10, 1, 64, 10, 4, 2, false},
    {1, 6, 6, 8, 8, 3, 3, 1, false},
    {0, 16, 16, 16, 32, 3, 3, 2, false},
};

class GradientsOfKernels : public testing::TestWithParam<Gradient> {};

TEST_P(GradientsOfKernels, SumInBlocks) {
  const Gradient& g = GetParam();
  const auto low = [](int64_t taps) { return (taps - 1) / 2; };
  const auto out = [&](int64_t in) { return (in - 1) / g.stride + 1; };
  const auto high = [&](int64_t in, int64_t taps) {
    return (out(in) - 1) * g.stride + taps - in - low(taps);
  };
  const auto module_in = [&](const std::string& type) {
    return parse_module(fmt::format(
        R"(
func @main(%x: {0}[{1},{2},{3},{4}], %dy: {0}[{1},{5},{6},{7}], %w: {0}[{4},{8},{9},{7}]) -> {0}[{4},{8},{9},{7}] {{
  %dw = conv %x, %dy {{input_batch=3, input_feature=0, input_spatial=[1,2], kernel_output=3, kernel_input=0, kernel_spatial=[1,2], output_batch=0, output_feature=3, output_spatial=[1,2], strides=[1,1], pad_low=[{10},{11}], pad_high=[{12},{13}], input_dilation=[1,1], kernel_dilation=[{14},{14}]}}
  %z = sub %w, %dw
  return %z
}})",
        type, g.batch, g.rows, g.columns, g.channels, out(g.rows), out(g.columns), g.features,
        g.height, g.width, low(g.height), low(g.width), high(g.rows, g.height),
        high(g.columns, g.width), g.stride));
  };
  const Module doubles = module_in("f64");
  const std::vector<Literal> inputs = random_inputs(doubles);
  const Literal expected = evaluate_main(doubles, inputs).front();
  for (const char* name : {"x86-64-v3", "x86-64-v4", "cortex-a76"}) {
    TargetInfo target = *find_target(name);
    target.l1_bytes = 16 << 10;
    target.l2_bytes = 160 << 10;
    PipelineOptions options;
    options.round_trip = true;
    const PipelineResult result = run_pipeline(doubles, target, options);
    const std::string text = loop::print(result.program);
    if (target.name == "x86-64-v3") {
      EXPECT_EQ(text.find("_block in 0 ..") != std::string::npos, g.in_blocks);
    }
    EXPECT_LT(error_of(loop::interpret(result.program, "run", inputs).front(), expected), 1e-12)
        << name;
  }
  TargetInfo native = resolve_target("native");
  native.l1_bytes = 8 << 10;
  native.l2_bytes = 80 << 10;
  expect_close_and_equal(compiled_case(module_in("f32"), "gradient", native, {}), 5e-6);
}

INSTANTIATE_TEST_SUITE_P(Convolutions, GradientsOfKernels, testing::ValuesIn(kGradients),
                         [](const auto& info) {
                           const Gradient& g = info.param;
                           return fmt::format("n{}_{}x{}_c{}_f{}_k{}x{}_s{}", g.batch, g.rows,
                                              g.columns, g.channels, g.features, g.height, g.width,
                                              g.stride);
                         });

TEST(NearConstants, StayAsTheyAre) {
  const Module module = residual_convolution(kConvs[0].shape, "f32");
  const std::string text = loop::print(run_pipeline(module, *find_target("x86-64-v4"), {}).program);
  EXPECT_EQ(text.find("prefetch "), std::string::npos);
  EXPECT_EQ(text.find("_block in 0 .."), std::string::npos);
}

/// One row times 64 kB of weights, which the second cache holds and the first does not; times 8 kB;
/// and times what neither holds.
TEST(StreamedConstants, TakeLongBodies) {
  const auto takes_steps = [](int64_t channels, int64_t steps, int64_t l2_bytes = 512 << 10) {
    TargetInfo target = *find_target("x86-64-v4");
    target.l2_bytes = l2_bytes;
    const Module module = residual_convolution({1, 1, 1, channels, 64, 1, 1}, "f32");
    const PipelineResult result = run_pipeline(module, target, {});
    const std::string loop = fmt::format("c in 0 .. {}", channels / steps);
    return loop::print(result.program).find(loop + " {") != std::string::npos;
  };
  EXPECT_TRUE(takes_steps(256, 16));
  EXPECT_TRUE(takes_steps(32, 4));
  EXPECT_TRUE(takes_steps(256, 4, 48 << 10));
}

}  // namespace
}  // namespace backcast
