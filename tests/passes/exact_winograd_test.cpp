// Minimal filtering of integers is exact: on cores that take it, what it computes is what the
// evaluator computes of the convolution, bit for bit, for every shape and border, by words of four
// bytes and by single ones; interpreted, and on emulated machines by C and LLVM.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <iostream>
#include <memory>
#include <random>

#include "backend/library/report.h"
#include "driver/device.h"
#include "ir/graph/error.h"
#include "ir/graph/evaluator.h"
#include "ir/graph/text.h"
#include "ir/loop/interpreter.h"
#include "ir/loop/text.h"
#include "passes/pipeline.h"

namespace backcast {
namespace {

struct Conv {
  const char* type;
  int64_t batch, rows, columns, channels, features;
  int64_t pads[4];  // low rows, low columns, high rows, high columns
};

// Six channels are padded to eight where words are multiplied.
const Conv kConvs[] = {
    {"u8", 1, 8, 8, 8, 16, {1, 1, 1, 1}},  {"i8", 1, 8, 8, 8, 16, {1, 1, 1, 1}},
    {"u8", 1, 5, 7, 4, 17, {1, 1, 1, 1}},  {"i8", 3, 6, 11, 12, 3, {0, 0, 0, 0}},
    {"i8", 2, 9, 5, 20, 1, {2, 1, 1, 2}},  {"u8", 1, 13, 4, 6, 5, {1, 0, 0, 1}},
    {"i8", 1, 2, 3, 64, 7, {1, 1, 1, 1}},  {"u8", 1, 4, 4, 4, 1, {1, 1, 1, 1}},
    {"u8", 1, 7, 9, 36, 24, {0, 1, 2, 0}},
};

/// Lowest and largest values are among them; most are one or the other.
std::string bytes(int64_t count, int low, int high, std::mt19937& random) {
  std::string text;
  for (int64_t i = 0; i < count; ++i) {
    const int value = random() % 3 == 0 ? std::uniform_int_distribution<int>(low, high)(random)
                      : random() % 2    ? low
                                        : high;
    text += fmt::format("{}{}", i ? "," : "", value);
  }
  return text;
}

constexpr const char* kLimited = "%m = min %x, %limit";
/// By way of a tensor of f32, four times as large.
constexpr const char* kNormalised = R"(%f = cast %x {to=f32}
  %e = exp %f
  %s = reduce %e {kind=sum, axes=[3]}
  %t = broadcast %s {dims=[0,1,2], shape=[SHAPE]}
  %q = div %e, %t
  %g = cast %q {to=u8}
  %m = min %g, %limit)";

/// A convolution of bytes whose sums are divided, so that some epilogue follows; channels last.
Module module_of(const Conv& c, int64_t stride = 1, std::string begin = kLimited) {
  const int64_t rows = (c.rows + c.pads[0] + c.pads[2] - 3) / stride + 1;
  const int64_t columns = (c.columns + c.pads[1] + c.pads[3] - 3) / stride + 1;
  const std::string output = fmt::format("{},{},{},{}", c.batch, rows, columns, c.features);
  const std::string input = fmt::format("{},{},{},{}", c.batch, c.rows, c.columns, c.channels);
  if (const size_t at = begin.find("SHAPE"); at != begin.npos) begin.replace(at, 5, input);
  std::mt19937 random(7);
  // Every position is read several times, or `min` would be computed where it is read.
  return parse_module(fmt::format(
      R"(
func @main(%x: {0}[{1}], %limit: {0}[{1}]) -> i16[{2}] {{
  {11}
  %a = cast %m {{to=i32}}
  %w = constant {{value=i8[{3},{4},3,3] [{5}]}}
  %b = cast %w {{to=i32}}
  %c = conv %a, %b {{input_feature=3, input_spatial=[1,2], kernel_spatial=[2,3], output_feature=3, output_spatial=[1,2], strides=[{10},{10}], pad_low=[{6},{7}], pad_high=[{8},{9}], input_dilation=[1,1], kernel_dilation=[1,1]}}
  %k = constant {{value=i32[1] [991]}}
  %d = broadcast %k {{dims=[0], shape=[{2}]}}
  %r = rem %c, %d
  %y = cast %r {{to=i16}}
  return %y
}})",
      c.type, input, output, c.features, c.channels,
      bytes(c.features * c.channels * 9, -128, 127, random), c.pads[0], c.pads[1], c.pads[2],
      c.pads[3], stride, begin));
}

std::vector<Literal> inputs_of(const Conv& c) {
  std::mt19937 random(11);
  const bool is_signed = std::string(c.type) == "i8";
  const int low = is_signed ? -128 : 0, high = is_signed ? 127 : 255;
  const std::vector<int64_t> shape{c.batch, c.rows, c.columns, c.channels};
  std::vector<double> values, limits;
  for (int64_t i = 0; i < c.batch * c.rows * c.columns * c.channels; ++i) {
    const bool extreme = random() % 3 != 0;
    values.push_back(extreme ? (random() % 2 ? low : high)
                             : std::uniform_int_distribution<int>(low, high)(random));
    limits.push_back(high);
  }
  const ElementType element = is_signed ? ElementType::i8 : ElementType::u8;
  return {Literal::from_doubles(element, shape, values),
          Literal::from_doubles(element, shape, limits)};
}

std::vector<Literal> expected_of(const Module& module, const std::vector<Literal>& inputs) {
  std::vector<Value> values(inputs.begin(), inputs.end());
  return {evaluate(module, module.function("main"), values).tensor};
}

PipelineResult compile(const Module& module, const std::string& target, WinogradMode mode,
                       const std::string& stop = {}) {
  PipelineOptions options;
  options.round_trip = true;
  options.name = "conv";
  options.passes.winograd.mode = mode;
  options.passes.bands = false;  // with minimal filtering there are none
  options.stop_after = stop;
  return run_pipeline(module, *find_target(target), options);
}

class ExactWinograd : public testing::TestWithParam<const char*> {};

TEST_P(ExactWinograd, IsTheEvaluators) {
  const bool in_words = find_target(GetParam())->pair_products;
  for (const Conv& c : kConvs) {
    const Module module = module_of(c);
    SCOPED_TRACE(print(module));
    const std::vector<Literal> inputs = inputs_of(c), expected = expected_of(module, inputs);
    for (const char* stop : {"winograd", "schedule", ""}) {
      const PipelineResult result = compile(module, GetParam(), WinogradMode::on, stop);
      ASSERT_EQ(result.notes.winograd.layers.size(), 1u);
      const WinogradLayer& layer = result.notes.winograd.layers[0];
      EXPECT_EQ(layer.tile, 2);
      EXPECT_EQ(layer.error, 0);
      Report report;
      report.winograd = {{layer.node, layer.tile, layer.error, layer.direct_error, 0, 0}};
      EXPECT_NE(report_text(report).find("exact"), std::string::npos) << report_text(report);
      EXPECT_EQ(loop::print(result.program).find("dot2") != std::string::npos, in_words);
      EXPECT_EQ(loop::interpret(result.program, "run", inputs), expected) << "after " << stop;
    }
  }
}

TEST_P(ExactWinograd, RunsOnTheMachine) {
  std::vector<CompiledModel> models;
  std::vector<DeviceCall> calls;
  std::vector<std::vector<Literal>> expected;
  for (const Conv& c : kConvs) {
    const Module module = module_of(c);
    CompiledModel model;
    model.target = *find_target(GetParam());
    model.model_file = fmt::format("conv{}", models.size());
    PipelineOptions options;
    options.name = model.model_file;
    options.passes.winograd.mode = WinogradMode::on;
    model.result = run_pipeline(module, model.target, options);
    model.abi = abi_of(model.result.program);
    DeviceCall call;
    call.model = models.size();
    call.inputs = inputs_of(c);
    expected.push_back(expected_of(module, call.inputs));
    models.push_back(std::move(model));
    calls.push_back(std::move(call));
  }
  std::vector<const CompiledModel*> pointers;
  for (const CompiledModel& model : models) pointers.push_back(&model);
  for (const Emit emit : {Emit::lib, Emit::c}) {
    std::unique_ptr<DeviceImage> image;
    try {
      image = std::make_unique<DeviceImage>(pointers, emit);
    } catch (const CompileError& error) {
      GTEST_SKIP() << error.what();
    }
    const std::vector<DeviceReply> replies = image->run(calls);
    ASSERT_EQ(replies.size(), calls.size());
    for (size_t i = 0; i < calls.size(); ++i) {
      EXPECT_EQ(replies[i].status, 0);
      EXPECT_EQ(replies[i].findings, "");
      EXPECT_EQ(replies[i].outputs, expected[i])
          << models[i].model_file << (emit == Emit::c ? ", C" : ", LLVM");
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, ExactWinograd,
                         testing::Values("cortex-m0", "cortex-m4", "cortex-m33", "riscv64"),
                         [](const testing::TestParamInfo<const char*>& info) {
                           std::string name = info.param;
                           for (char& c : name) c = c == '-' ? '_' : c;
                           return name;
                         });

TEST(ExactWinogradLayers, StayDirectWhereSumsMightNotFit) {
  const Module module = module_of({"u8", 1, 4, 4, 1024, 4, {1, 1, 1, 1}});
  const PipelineResult result = compile(module, "cortex-m4", WinogradMode::on, "winograd");
  ASSERT_EQ(result.notes.winograd.layers.size(), 1u);
  EXPECT_EQ(result.notes.winograd.layers[0].tile, 0);
}

TEST(ExactWinogradLayers, LeaveBytesToOtherReaders) {
  const Module module = parse_module(R"(
func @main(%x: u8[1,6,6,4], %limit: u8[1,6,6,4]) -> i32[1,6,6,4] {
  %m = min %x, %limit
  %a = cast %m {to=i32}
  %w = constant {value=i8[1,4,3,3] [1,2,3,4,5,6,7,8,9,-1,2,-3,4,-5,6,-7,8,-9,127,0,0,0,-128,0,0,0,1,0,0,1,0,1,0,1,0,0]}
  %v = concat %w, %w, %w, %w {axis=0}
  %b = cast %v {to=i32}
  %c = conv %a, %b {input_feature=3, input_spatial=[1,2], kernel_spatial=[2,3], output_feature=3, output_spatial=[1,2], strides=[1,1], pad_low=[1,1], pad_high=[1,1], input_dilation=[1,1], kernel_dilation=[1,1]}
  %y = add %c, %a
  return %y
})");
  const std::vector<Literal> inputs = inputs_of({"u8", 1, 6, 6, 4, 4, {1, 1, 1, 1}});
  for (const char* target : {"cortex-m0", "cortex-m4"}) {
    const PipelineResult result = compile(module, target, WinogradMode::on);
    EXPECT_EQ(loop::interpret(result.program, "run", inputs), expected_of(module, inputs));
  }
}

TEST(ExactWinogradLayers, StayDirectWithStridesAndWithVectors) {
  const Conv conv = {"u8", 1, 8, 8, 16, 16, {1, 1, 1, 1}};
  EXPECT_TRUE(compile(module_of(conv, 2), "cortex-m4", WinogradMode::on, "winograd")
                  .notes.winograd.layers.empty());
  for (const char* target : {"x86-64-v3", "cascadelake", "aarch64"}) {
    EXPECT_TRUE(compile(module_of(conv), target, WinogradMode::on, "winograd")
                    .notes.winograd.layers.empty());
  }
}

TEST(ExactWinogradLayers, AreChosenByTheModelWhereTheArenaStays) {
  const auto arena = [](const Module& module, WinogradMode mode) {
    return compile(module, "cortex-m4", mode).program.arena_bytes;
  };
  const auto chosen = [](const Module& module) {
    return compile(module, "cortex-m4", WinogradMode::automatic, "winograd")
        .notes.winograd.layers.at(0)
        .tile;
  };
  // The arena holds the convolution's operand, and the scratch where there is more room later on.
  const Conv conv = {"u8", 1, 16, 16, 32, 32, {1, 1, 1, 1}};
  const Module tight = module_of(conv), roomy = module_of(conv, 1, kNormalised);
  EXPECT_GT(arena(tight, WinogradMode::on), arena(tight, WinogradMode::off));
  EXPECT_EQ(chosen(tight), 0);
  EXPECT_EQ(arena(roomy, WinogradMode::on), arena(roomy, WinogradMode::off));
  EXPECT_EQ(chosen(roomy), 2);
  EXPECT_EQ(chosen(module_of({"u8", 1, 16, 16, 32, 1, {1, 1, 1, 1}}, 1, kNormalised)), 0);
}

}  // namespace
}  // namespace backcast
