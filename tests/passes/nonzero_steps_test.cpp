// Products behind rectifiers that leave out factors of zero: which do, and the evaluator's results
// whatever the factors.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "ir/graph/evaluator.h"
#include "ir/graph/text.h"
#include "ir/loop/interpreter.h"
#include "ir/target/target_info.h"
#include "passes/pipeline.h"

namespace backcast {
namespace {

const char* const kTargets[] = {"x86-64-v3", "x86-64-v4", "cortex-a76", "cortex-m4",
                                "cortex-m0", "wasm32",    "armv7-neon"};

PipelineResult compile(const Module& module, const std::string& target, bool skip_zeros = true) {
  PipelineOptions options;
  options.round_trip = true;
  options.passes.schedule.skip_zeros = skip_zeros;
  options.passes.bands = false;  // of one row each
  return run_pipeline(module, *find_target(target), options);
}

/// Text of so many numbers between -1 and 1.
std::string constants(int64_t count) {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> real(-1, 1);
  std::string text;
  for (int64_t i = 0; i < count; ++i) text += fmt::format("{}{}", i ? "," : "", real(random));
  return text;
}

/// A function of x, [rows, steps], with `behind`, which computes %r of it, before the product.
Module module_of(int64_t rows, int64_t steps, int64_t results, const std::string& behind,
                 const std::string& weights, const std::string& type = "f32") {
  return parse_module(fmt::format(R"(
entry "run" @main
func @main(%x: {5}[{0},{1}]) -> {5}[{0},{2}] {{
{3}
  %w = constant {{value={5}[{1},{2}] [{4}]}}
  %y = dot_general %r, %w {{lhs_contract=[1], rhs_contract=[0]}}
  return %y
}})",
                                  rows, steps, results, behind, weights, type));
}

const std::string kRelu = "  %r = relu %x";

struct Layer {
  int64_t steps, results;
};

// Words of every width, blocks of every width, sums of one step.
const Layer kLayers[] = {{128, 128}, {67, 260},  {1, 200}, {255, 97},
                         {256, 131}, {300, 160}, {9, 640}};

enum class Factors { mixed, none, all, special };

Literal factors(ElementType type, int64_t count, Factors kind) {
  std::mt19937 random(11);
  std::uniform_real_distribution<double> real(-1, 1);
  std::vector<double> values(static_cast<size_t>(count));
  for (double& value : values) {
    value = real(random);
    if (kind == Factors::none) value = -std::abs(value);
    if (kind == Factors::all) value = std::abs(value) + 0.01;
  }
  if (kind == Factors::special) {
    values.front() = -0.0;
    values.back() = std::numeric_limits<double>::quiet_NaN();
  }
  return Literal::from_doubles(type, {1, count}, values);
}

class NonzeroSteps : public testing::TestWithParam<Layer> {};

TEST_P(NonzeroSteps, LikeTheEvaluator) {
  const auto [steps, results] = GetParam();
  for (const ElementType type : {ElementType::f32, ElementType::f64}) {
    const Module module = module_of(1, steps, results, kRelu, constants(steps * results),
                                    type == ElementType::f32 ? "f32" : "f64");
    const double tolerance = type == ElementType::f32 ? 2e-5 : 1e-12;
    for (const char* target : kTargets) {
      const PipelineResult compiled = compile(module, target);
      const bool worth = find_target(target)->vector_bits == 0 || (steps > 100 && results > 150);
      ASSERT_TRUE(compiled.notes.skipping.size() == 1 || steps == 1 || !worth) << target;
      for (const Factors kind : {Factors::mixed, Factors::none, Factors::all, Factors::special}) {
        const Literal x = factors(type, steps, kind);
        const Value expected = evaluate(module, module.function("main"), std::vector<Value>{x});
        const Literal found = loop::interpret(compiled.program, "run", {x}).at(0);
        for (int64_t i = 0; i < results; ++i) {
          const double wanted = expected.tensor.as_double(i);
          ASSERT_EQ(std::isnan(found.as_double(i)), std::isnan(wanted)) << target;
          if (std::isnan(wanted)) continue;
          ASSERT_NEAR(found.as_double(i), wanted, tolerance) << target;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Layers, NonzeroSteps, testing::ValuesIn(kLayers), [](const auto& info) {
  return fmt::format("{}x{}", info.param.steps, info.param.results);
});

/// An image behind a rectifier, read by one product in another order than it lies in.
TEST(NonzeroStepsOf, AnImage) {
  const Module module = parse_module(fmt::format(R"(
entry "run" @main
func @main(%x: f32[1,3,5,4]) -> f32[1,200] {{
  %r = relu %x
  %w = constant {{value=f32[4,3,5,200] [{}]}}
  %y = dot_general %r, %w {{lhs_contract=[1,2,3], rhs_contract=[1,2,0]}}
  return %y
}})",
                                                 constants(4 * 3 * 5 * 200)));
  std::mt19937 random(3);
  std::uniform_real_distribution<double> real(-1, 1);
  std::vector<double> values(60);
  for (double& value : values) value = real(random);
  const Literal x = Literal::from_doubles(ElementType::f32, {1, 3, 5, 4}, values);
  const Value expected = evaluate(module, module.function("main"), std::vector<Value>{x});
  for (const char* target : {"x86-64-v3", "cortex-m4"}) {
    const PipelineResult compiled = compile(module, target);
    EXPECT_EQ(compiled.notes.skipping.size(), 1) << target;
    const Literal found = loop::interpret(compiled.program, "run", {x}).at(0);
    for (int64_t i = 0; i < 200; ++i) {
      ASSERT_NEAR(found.as_double(i), expected.tensor.as_double(i), 1e-5) << target;
    }
  }
}

/// Weights that are trained, which lie one behind another along the sum.
TEST(NonzeroStepsOf, TrainedWeights) {
  const Module module = parse_module(fmt::format(R"(
state "w" parameter = f32[40,32] [{}]
entry "run" @main
func @main(%w: f32[40,32], %x: f32[1,32]) -> (f32[1,40], f32[40,32]) results("y", "w") {{
  %r = relu %x
  %y = dot_general %r, %w {{lhs_contract=[1], rhs_contract=[1]}}
  %two = add %w, %w
  %all = tuple %y, %two
  return %all
}})",
                                                 constants(40 * 32)));
  const PipelineResult compiled = compile(module, "cortex-m4");
  EXPECT_EQ(compiled.notes.skipping.size(), 1);
  const Literal x = factors(ElementType::f32, 32, Factors::mixed);
  loop::StateValues state{{"w", module.states.at(0).initial}};
  const Literal w = state.at("w");
  const Value expected = evaluate(module, module.function("main"), std::vector<Value>{w, x});
  const loop::RunResult found = loop::interpret(compiled.program, "run", {x}, state);
  for (int64_t i = 0; i < 40; ++i) {
    ASSERT_NEAR(found.outputs.at(0).as_double(i), expected.elements.front().tensor.as_double(i),
                1e-5);
  }
}

/// The bits take room on the stack only.
TEST(NonzeroStepsOf, NoMemoryInTheArena) {
  const Module module = module_of(1, 64, 64, kRelu, constants(64 * 64));
  const PipelineResult skipping = compile(module, "cortex-m4");
  EXPECT_EQ(skipping.notes.skipping.size(), 1);
  EXPECT_EQ(skipping.program.arena_bytes, compile(module, "cortex-m4", false).program.arena_bytes);
}

/// Half of the steps are expected to be taken when work is weighed against a thread's.
TEST(NonzeroStepsOf, WhatThreadsShareOut) {
  const Module module = module_of(1, 1024, 1024, kRelu, constants(1024 * 1024));
  const PipelineResult compiled = compile(module, "x86-64-v3");
  EXPECT_EQ(compiled.notes.skipping.size(), 1);
  const std::vector<loop::Step>& steps = compiled.program.entries.at(0).steps;
  EXPECT_GT(steps.back().grain, 0);
}

size_t skipping(const Module& module) { return compile(module, "cortex-m4").notes.skipping.size(); }

TEST(NonzeroStepsOf, WhatIsZeroOnOneSideOfABound) {
  const std::string zero = "  %c = constant {value=f32[] 0}\n  %z = broadcast %c {shape=[1,32]}\n";
  const std::string bounds =
      "  %a = constant {value=f32[] -1}\n  %n = broadcast %a {shape=[1,32]}\n"
      "  %b = constant {value=f32[] 6}\n  %u = broadcast %b {shape=[1,32]}\n";
  const auto count = [](const std::string& behind) {
    return skipping(module_of(1, 32, 32, behind, constants(32 * 32)));
  };
  EXPECT_EQ(count(kRelu), 1);
  EXPECT_EQ(count(zero + bounds + "  %r = clamp %z, %x, %u"), 1);
  EXPECT_EQ(count(zero + "  %p = compare %x, %z {direction=gt}\n  %r = select %p, %x, %z"), 1);
  EXPECT_EQ(count("  %p = relu %x\n  %q = sigmoid %x\n  %r = mul %p, %q"), 1);
  EXPECT_EQ(count("  %p = relu %x\n  %q = cast %p {to=f16}\n  %r = cast %q {to=f32}"), 1);
  // A hard swish is seldom zero.
  EXPECT_EQ(count(zero + bounds + "  %o = add %x, %u\n  %p = clamp %z, %o, %u\n  %r = mul %x, %p"),
            0);
  EXPECT_EQ(count("  %r = sigmoid %x"), 0);
  EXPECT_EQ(count("  %r = abs %x"), 0);
  EXPECT_EQ(count(bounds + "  %r = clamp %n, %x, %u"), 0);
  EXPECT_EQ(count("  %p = relu %x\n  %q = sigmoid %x\n  %r = add %p, %q"), 0);
}

TEST(NonzeroStepsOf, NothingElse) {
  const Module layer = module_of(1, 32, 32, kRelu, constants(32 * 32));
  EXPECT_EQ(skipping(layer), 1);
  EXPECT_EQ(compile(layer, "cortex-m4", false).notes.skipping.size(), 0) << "not asked for";
  EXPECT_EQ(skipping(module_of(2, 32, 32, kRelu, constants(32 * 32))), 0) << "two rows";
  EXPECT_EQ(skipping(module_of(1, 32, 2, kRelu, constants(32 * 2))), 0) << "few results";
  // What a zero makes a NaN of stays in the sum.
  EXPECT_EQ(skipping(module_of(1, 32, 32, kRelu, constants(32 * 32 - 1) + ",inf")), 0);
}

}  // namespace
}  // namespace backcast
