// Gradients of weights behind rectifiers that leave out factors of zero: the evaluator's results
// whatever the factors, with steps across the factor's rows. Small caches make blocks of small
// shapes.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

#include "ir/loop/text.h"
#include "passes/schedule/reorder.h"
#include "tests/passes/random_convolution.h"
#include "tests/passes/zero_factors.h"

namespace backcast {
namespace {

struct Gradient {
  ConvShape shape;
  bool of_cotangent;  // what was rectified: the cotangent, not the operand
  Form form;
  std::string name() const { return shape.name() + (of_cotangent ? "_dy" : ""); }
};

// Words whole and in part, one and several; primes; borders; strides; whole vectors and not.
const Gradient kGradients[] = {
    {{1, 6, 8, 32, 64, 1, 1}, false, Form::rows},   {{2, 6, 8, 33, 64, 1, 1}, false, Form::blocks},
    {{5, 6, 8, 17, 64, 1, 1}, false, Form::blocks}, {{1, 6, 8, 16, 64, 3, 1}, false, Form::rows},
    {{2, 6, 8, 20, 64, 3, 1}, false, Form::blocks}, {{2, 12, 16, 8, 64, 3, 2}, false, Form::blocks},
    {{2, 6, 8, 8, 64, 5, 1}, false, Form::blocks},  {{8, 1, 1, 40, 128, 1, 1}, false, Form::rows},
    {{8, 1, 1, 128, 40, 1, 1}, true, Form::rows},   {{96, 1, 1, 24, 64, 1, 1}, false, Form::blocks},
    {{1, 5, 5, 64, 8, 1, 1}, false, Form::none},    {{0, 5, 5, 16, 64, 1, 1}, false, Form::none},
    {{2, 6, 8, 17, 67, 1, 1}, false, Form::none},
};

constexpr int64_t kSmall = 16 << 10;

int64_t outputs_along(const ConvShape& c, int64_t extent) {
  return (extent + 2 * (c.kernel / 2) - c.kernel) / c.stride + 1;
}

/// w - 0.5 dw of a convolution's weights w, [features, channels, kernel, kernel].
Module module_of(const Gradient& gradient, const std::string& type) {
  const ConvShape& c = gradient.shape;
  const int64_t rows = outputs_along(c, c.rows), columns = outputs_along(c, c.columns);
  const int64_t pad = c.kernel / 2;
  const auto high = [&](int64_t in, int64_t out) {
    return c.kernel + (out - 1) * c.stride - in - pad;
  };
  const int64_t count = c.features * c.channels * c.kernel * c.kernel;
  std::mt19937 random(7);
  return parse_module(fmt::format(
      R"(
state "w" parameter = {0}[{1},{2},{3},{3}] [{4}]
entry "step" @main
func @main(%w: {0}[{1},{2},{3},{3}], %x: {0}[{5},{6},{7},{2}], %dy: {0}[{5},{8},{9},{1}]) -> ({0}[{1},{2},{3},{3}]) results("w") {{
  %r = relu %{10}
  %g = conv %{11}, %{12} {{input_batch=3, input_feature=0, input_spatial=[1,2], kernel_output=3, kernel_input=0, kernel_spatial=[1,2], output_batch=1, output_feature=0, output_spatial=[2,3], strides=[1,1], pad_low=[{13},{13}], pad_high=[{14},{15}], input_dilation=[1,1], kernel_dilation=[{16},{16}]}}
  %half = constant {{value={0}[] 0.5}}
  %rate = broadcast %half {{shape=[{1},{2},{3},{3}]}}
  %d = mul %rate, %g
  %new = sub %w, %d
  %all = tuple %new
  return %all
}})",
      type, c.features, c.channels, c.kernel, random_numbers(count, random), c.batch, c.rows,
      c.columns, rows, columns, gradient.of_cotangent ? "dy" : "x",
      gradient.of_cotangent ? "x" : "r", gradient.of_cotangent ? "r" : "dy", pad,
      high(c.rows, rows), high(c.columns, columns), c.stride));
}

/// The operand and the cotangent.
std::vector<Literal> inputs_of(const Gradient& gradient, const Module& module, Factors kind) {
  std::vector<Literal> inputs = random_inputs(module);
  inputs.erase(inputs.begin());  // the state
  Literal& rectified = inputs[gradient.of_cotangent ? 1 : 0];
  rectified = rectifiable(rectified, kind);
  return inputs;
}

/// A single unit for products makes leaving them out pay more often; a small first cache makes
/// blocks of small shapes.
enum class Core { whole, single, small };

TargetInfo core_of(const std::string& name, Core core) {
  TargetInfo target = *find_target(name);
  if (core != Core::whole) target.fma_units = 1;
  return core == Core::small ? small_caches(target, kSmall) : target;
}

/// Weights after a step as the evaluator has them, from every target's code.
void expect_like_the_evaluator(const Gradient& gradient, const std::string& type,
                               const std::vector<Factors>& kinds) {
  const Module module = module_of(gradient, type);
  const Literal w = module.states.at(0).initial;
  for (const Factors kind : kinds) {
    const std::vector<Literal> inputs = inputs_of(gradient, module, kind);
    const Value expected = evaluate(module, module.function("main"),
                                    std::vector<Value>{w, inputs.at(0), inputs.at(1)});
    for (const char* name : {"x86-64", "x86-64-v3", "x86-64-v4"}) {
      for (const Core core : {Core::whole, Core::single, Core::small}) {
        SCOPED_TRACE(fmt::format("{} {} {}", name, type, static_cast<int>(core)));
        const PipelineResult compiled = compile(module, core_of(name, core));
        const Order order = compiled.program.buffer(compiled.program.states().at(0)).order;
        const auto ordered = [&](const Literal& v) {
          return order.empty() ? v : permuted(v, order);
        };
        loop::StateValues state{{"w", ordered(w)}};
        const loop::RunResult found = loop::interpret(compiled.program, "step", inputs, state);
        ASSERT_EQ(found.status, loop::RunStatus::ok);
        expect_like(state.at("w"), ordered(expected.elements.at(0).tensor),
                    type == "f64" ? 1e-12 : 2e-5);
      }
    }
  }
}

class NonzeroGradients : public testing::TestWithParam<Gradient> {};

TEST_P(NonzeroGradients, LikeTheEvaluator) {
  for (const char* type : {"f32", "f64"}) {
    expect_like_the_evaluator(GetParam(), type,
                              {Factors::mixed, Factors::none, Factors::all, Factors::special});
  }
}

TEST_P(NonzeroGradients, AreChosen) {
  const Form form = GetParam().form;
  const Module module = module_of(GetParam(), "f32");
  const TargetInfo target = small_caches(*find_target("x86-64-v3"), kSmall);
  const PipelineResult compiled = compile(module, target);
  EXPECT_EQ(compiled.notes.skipping.size(), form != Form::none);
  const std::string text = loop::print(compiled.program);
  EXPECT_EQ(text.find("alloc totals") != std::string::npos, form == Form::blocks);
  EXPECT_EQ(compile(module, target, false).notes.skipping.size(), 0);
  // Tiles of rows take fewer instructions where loads are instructions of their own.
  EXPECT_EQ(compile(module, *find_target("cortex-a76")).notes.skipping.size(), 0);
  EXPECT_EQ(compile(module, *find_target("cortex-m4")).notes.skipping.size(), 0);
}

INSTANTIATE_TEST_SUITE_P(Convolutions, NonzeroGradients, testing::ValuesIn(kGradients),
                         [](const auto& info) { return info.param.name(); });

/// Where vectors of features are few, all taps of a window, or those of a row, take each step.
TEST(NonzeroGradientsOf, Windows) {
  const ConvShape shapes[] = {{1, 16, 16, 8, 16, 3, 1},  {2, 11, 13, 17, 32, 3, 1},
                              {1, 32, 32, 16, 16, 3, 1}, {2, 9, 9, 16, 64, 3, 1},
                              {1, 12, 20, 8, 24, 5, 1},  {3, 5, 40, 16, 16, 3, 1}};
  int found = 0;
  for (const ConvShape& shape : shapes) {
    SCOPED_TRACE(shape.name());
    const Gradient gradient{shape, false, Form::none};
    expect_like_the_evaluator(gradient, "f64", {Factors::mixed, Factors::special});
    expect_like_the_evaluator(gradient, "f32", {Factors::mixed});
    for (const char* name : {"x86-64-v3", "x86-64-v4"}) {
      const TargetInfo target = core_of(name, Core::single);
      const PipelineResult compiled = compile(module_of(gradient, "f32"), target);
      found += loop::print(compiled.program).find("alloc border") != std::string::npos;
    }
  }
  EXPECT_GE(found, 6);
}

/// What waits between blocks is no larger than the first cache, however many taps there are.
TEST(NonzeroGradientsOf, TotalsStayNear) {
  for (const int64_t features : {32, 64}) {
    const Gradient gradient{{2, 28, 28, 64, features, 3, 1}, false, Form::blocks};
    const TargetInfo target = core_of("x86-64-v4", Core::single);
    const std::string text = loop::print(compile(module_of(gradient, "f32"), target).program);
    const std::string alloc = "alloc totals : f32[";
    const size_t at = text.find(alloc);
    ASSERT_NE(at, std::string::npos) << features;
    ASSERT_NE(text.find("alloc border"), std::string::npos) << features;
    EXPECT_LE(4 * std::stoll(text.substr(at + alloc.size())), target.l1_bytes) << features;
  }
}

TEST(NonzeroGradientsOf, RandomShapes) {
  std::mt19937 random(3);
  const auto from = [&](int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random() % static_cast<uint32_t>(high - low + 1));
  };
  int found = 0;
  for (int i = 0; i < 24; ++i) {
    const int64_t kernel = 2 * from(0, 1) + 1, stride = kernel == 1 ? 1 : from(1, 2);
    const Gradient gradient{
        {from(1, 4), from(3, 9), from(3, 9), from(2, 40), from(48, 100), kernel, stride},
        from(0, 3) == 0,
        Form::none};
    SCOPED_TRACE(gradient.name());
    expect_like_the_evaluator(gradient, "f64", {Factors::mixed});
    const TargetInfo target = core_of("x86-64-v3", Core::small);
    found += compile(module_of(gradient, "f32"), target).notes.skipping.empty() ? 0 : 1;
  }
  EXPECT_GT(found, 4);
}

}  // namespace
}  // namespace backcast
