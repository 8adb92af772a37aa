// Minimal filtering is exact in real numbers: in double, what the transformed kernels compute is
// what the evaluator computes of the convolution and of its gradients, for every shape and border;
// in single precision the difference stays within the bound, and C and LLVM agree to the bit.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

#include "ir/graph/text.h"
#include "ir/loop/interpreter.h"
#include "ir/loop/step_access.h"
#include "ir/loop/text.h"
#include "passes/graph/differentiate.h"
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

/// relu(conv(x, w) + r), channels last; the weights are constant, or the last parameter. A batch of
/// 0 is one that run time gives.
Module module_of(const Conv& c, const std::string& type, int64_t stride = 1,
                 bool constant_weights = true) {
  const int64_t rows = (c.rows + c.pads[0] + c.pads[2] - 3) / stride + 1;
  const int64_t columns = (c.columns + c.pads[1] + c.pads[3] - 3) / stride + 1;
  const std::string batch = c.batch == 0 ? "N" : std::to_string(c.batch);
  const std::string out = fmt::format("{}[{},{},{},{}]", type, batch, rows, columns, c.features);
  const std::string weights = fmt::format("{}[{},{},3,3]", type, c.features, c.channels);
  std::mt19937 random(7);
  const std::string constant = fmt::format("%w = constant {{value={} [{}]}}", weights,
                                           random_numbers(c.features * c.channels * 9, random));
  return parse_module(fmt::format(
      R"(
symbol N in 1..4
func @main(%x: {0}[{1},{2},{3},{4}], %r: {5}{6}) -> {5} {{
  {7}
  %c = conv %x, %w {{input_feature=3, input_spatial=[1,2], kernel_spatial=[2,3], output_feature=3, output_spatial=[1,2], strides=[{12},{12}], pad_low=[{8},{9}], pad_high=[{10},{11}], input_dilation=[1,1], kernel_dilation=[1,1]}}
  %s = add %c, %r
  %y = relu %s
  return %y
}})",
      type, batch, c.rows, c.columns, c.channels, out,
      constant_weights ? "" : fmt::format(", %w: {}", weights), constant_weights ? constant : "",
      c.pads[0], c.pads[1], c.pads[2], c.pads[3], stride));
}

/// The gradients of the same with respect to x, r and w, for a cotangent.
Module gradient_of(const Conv& c, const std::string& type, int64_t stride = 1) {
  Module module = add_vjp(module_of(c, type, stride, false), "main");
  Function vjp = module.function("main_vjp");
  vjp.name = "main";
  module.functions.clear();
  module.functions.emplace("main", std::move(vjp));
  return module;
}

PipelineResult compile(const Module& module, const TargetInfo& target, WinogradMode mode,
                       const std::string& stop = {}, int64_t threads = 1) {
  PipelineOptions options;
  options.round_trip = true;
  options.passes.winograd = {.mode = mode, .threads = threads};
  options.stop_after = stop;
  return run_pipeline(module, target, options);
}

/// In double, after each step of the way, on targets of all kinds.
void expect_exact_in_double(const Module& module, size_t layers) {
  const std::vector<Literal> inputs = random_inputs(module);
  const std::vector<Literal> expected = evaluate_main(module, inputs);
  for (const char* target : {"x86-64-v3", "x86-64-v4", "cortex-m4"}) {
    for (const WinogradMode mode : {WinogradMode::f2, WinogradMode::f4}) {
      for (const char* stop : {"winograd", "schedule", "", "in parts"}) {
        const bool whole = stop != std::string("in parts");
        const PipelineResult result = whole ? compile(module, *find_target(target), mode, stop)
                                            : compile(module, *find_target(target), mode, "", 3);
        ASSERT_EQ(result.notes.winograd.layers.size(), layers);
        for (const WinogradLayer& layer : result.notes.winograd.layers) {
          EXPECT_EQ(layer.tile, mode == WinogradMode::f2 ? 2 : 4);
        }
        const std::vector<Literal> found = loop::interpret(result.program, "run", inputs);
        ASSERT_EQ(found.size(), expected.size());
        for (size_t i = 0; i < expected.size(); ++i) {
          EXPECT_LT(error_of(found[i], expected[i]), 1e-12)
              << target << " after " << stop << ", result " << i;
        }
      }
    }
  }
}

/// For this host, in single precision.
void expect_close_when_compiled(const Module& module) {
  for (const WinogradMode mode : {WinogradMode::f2, WinogradMode::f4}) {
    PipelineOptions options;
    options.passes.winograd.mode = mode;
    const NodeCase one = compiled_case(module, "conv", resolve_target("native"), options);
    EXPECT_GT(one.model.result.notes.winograd.layers.at(0).tile, 0);
    expect_close_and_equal(one, kWinogradBound);
  }
}

class Shapes : public testing::TestWithParam<Conv> {};

TEST_P(Shapes, ExactInDouble) { expect_exact_in_double(module_of(GetParam(), "f64"), 1); }

TEST_P(Shapes, ExactWithWeightsThatAreGiven) {
  expect_exact_in_double(module_of(GetParam(), "f64", 1, false), 1);
}

/// What the rectifier looks at, and both gradients.
TEST_P(Shapes, GradientsExactInDouble) {
  expect_exact_in_double(gradient_of(GetParam(), "f64"), 3);
}

TEST_P(Shapes, CompiledWithinTheBoundAndToTheBit) {
  expect_close_when_compiled(module_of(GetParam(), "f32"));
}

TEST_P(Shapes, GradientsCompiledWithinTheBoundAndToTheBit) {
  expect_close_when_compiled(gradient_of(GetParam(), "f32"));
}

INSTANTIATE_TEST_SUITE_P(Winograd, Shapes, testing::ValuesIn(kConvs),
                         [](const auto& info) { return info.param.name(); });

TEST(Winograd, ThreadsShareOutParts) {
  const Module module = module_of({1, 16, 16, 8, 16, {1, 1, 1, 1}}, "f32");
  TargetInfo target = *find_target("x86-64-v3");
  target.parallel_grain = 1;
  const auto shared = [&](int64_t threads) {
    const PipelineResult result = compile(module, target, WinogradMode::f4, "", threads);
    int64_t parts = 0;
    loop::for_each_call(result.program.entries[0].steps, [&](const loop::Step& step) {
      const std::string& name = step.kernel;
      const bool is_layer = name.find("_winograd") != std::string::npos && step.grain > 0;
      if (is_layer) parts = step.sizes.back().constant();
    });
    return parts;
  };
  EXPECT_EQ(shared(1), 0);
  EXPECT_EQ(shared(2), 2);
  EXPECT_EQ(shared(4), 4);
}

TEST(Winograd, TakesABatchThatRunTimeGives) {
  Conv conv{0, 9, 6, 5, 18, {1, 1, 1, 1}};
  const Module any = gradient_of(conv, "f64");
  for (const int64_t batch : {1, 4}) {
    conv.batch = batch;
    const Module fixed = gradient_of(conv, "f64");
    const std::vector<Literal> inputs = random_inputs(fixed);
    const std::vector<Literal> expected = evaluate_main(fixed, inputs);
    for (const char* target : {"x86-64-v4", "cortex-m4"}) {
      const PipelineResult result = compile(any, *find_target(target), WinogradMode::on);
      ASSERT_EQ(result.notes.winograd.layers.size(), 3u);
      const std::vector<Literal> found = loop::interpret(result.program, "run", inputs);
      ASSERT_EQ(found.size(), expected.size());
      for (size_t i = 0; i < expected.size(); ++i) {
        EXPECT_LT(error_of(found[i], expected[i]), 1e-12) << target << ", batch " << batch;
      }
    }
  }
}

TEST(Winograd, MeasuresItsErrorWithinTheBound) {
  const Module module = module_of({1, 8, 8, 64, 64, {1, 1, 1, 1}}, "f32");
  for (const WinogradMode mode : {WinogradMode::f2, WinogradMode::f4}) {
    const WinogradLayer layer =
        compile(module, *find_target("x86-64-v4"), mode, "winograd").notes.winograd.layers.at(0);
    EXPECT_GT(layer.error, 0);
    EXPECT_LT(layer.error, kWinogradBound);
    EXPECT_GT(layer.direct_error, 0);
  }
}

/// A slice of the batch that the layer reads where it lies: fewer images than the tensor has.
TEST(Winograd, FiltersTheImagesOfTheLayerAlone) {
  std::string text = R"(
func @main(%x: f64[4,7,6,3], %w: f64[5,3,3,3]) -> f64[2,6,6,5] {
  %s = slice %x {start=[0,1,0,0], limit=[2,7,6,3], stride=[1,1,1,1]}
  %y = conv %s, %w {input_feature=3, input_spatial=[1,2], kernel_spatial=[2,3], output_feature=3, output_spatial=[1,2], strides=[1,1], pad_low=[1,1], pad_high=[1,1], input_dilation=[1,1], kernel_dilation=[1,1]}
  return %y
})";
  expect_exact_in_double(parse_module(text), 1);
}

TEST(Winograd, LeavesStridesAlone) {
  const Module module = module_of({1, 8, 8, 16, 16, {1, 1, 1, 1}}, "f32", 2);
  EXPECT_TRUE(compile(module, *find_target("x86-64-v4"), WinogradMode::on, "winograd")
                  .notes.winograd.layers.empty());
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
        .notes.winograd.layers.at(0)
        .tile;
  };
  EXPECT_GT(tile({1, 32, 32, 16, 16, {1, 1, 1, 1}}), 0);
  EXPECT_EQ(tile({1, 32, 32, 1, 1, {1, 1, 1, 1}}), 0);
}

/// The same multiplications take longer, the same caches do not.
TEST(Winograd, PaysSoonerWhereVectorsGoInHalves) {
  TargetInfo target = *find_target("x86-64-v4");
  const Module module = module_of({1, 14, 14, 256, 256, {1, 1, 1, 1}}, "f32", 1, false);
  const auto tile = [&] {
    return compile(module, target, WinogradMode::automatic, "winograd")
        .notes.winograd.layers.at(0)
        .tile;
  };
  EXPECT_EQ(tile(), 0);
  target.halves_vectors = true;
  EXPECT_GT(tile(), 0);
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
