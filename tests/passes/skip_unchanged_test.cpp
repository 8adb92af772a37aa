// Updates that leave rows out: the evaluator's weights and gradients whatever the factors, and rows
// without a gradient to the bit.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "ir/graph/evaluator.h"
#include "ir/graph/text.h"
#include "ir/loop/interpreter.h"
#include "ir/loop/text.h"
#include "ir/target/target_info.h"
#include "passes/pipeline.h"

namespace backcast {
namespace {

struct Layer {
  int64_t rows, columns;
  bool joined;  // the gradient of the operand reads the weights, too
  std::string name() const { return fmt::format("{}x{}{}", rows, columns, joined ? "j" : ""); }
};

const Layer kLayers[] = {
    {67, 260, false}, {1, 513, false}, {31, 17, false}, {128, 1, false}, {0, 300, false},
    {67, 256, true},  {66, 128, true}, {1, 512, true},  {37, 131, true}, {128, 1, true},
};

/// w - 0.5 (dy x) and, joined, dy w.
Module module_of(const Layer& layer) {
  std::string zeros;
  for (int64_t i = 0; i < layer.rows * layer.columns; ++i) zeros += i ? ",0" : "0";
  return parse_module(fmt::format(
      R"(
state "w" parameter = f32[{0},{1}] [{2}]
entry "step" @main
func @main(%w: f32[{0},{1}], %dy: f32[1,{0}], %x: f32[1,{1}]) -> (f32[1,{1}], f32[{0},{1}]) results("dx", "w") {{
  %dx = {3}
  %g = dot_general %dy, %x {{lhs_contract=[0], rhs_contract=[0]}}
  %half = constant {{value=f32[] 0.5}}
  %rate = broadcast %half {{shape=[{0},{1}]}}
  %d = mul %rate, %g
  %new = sub %w, %d
  %all = tuple %dx, %new
  return %all
}})",
      layer.rows, layer.columns, zeros,
      layer.joined ? "dot_general %dy, %w {lhs_contract=[1], rhs_contract=[0]}" : "relu %x"));
}

/// Numbers between -1 and 1; a third of them, if wanted, exactly zero.
Literal numbers(std::vector<int64_t> shape, bool zeros, uint32_t seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> real(-1, 1);
  int64_t count = 1;
  for (const int64_t extent : shape) count *= extent;
  std::vector<double> values(static_cast<size_t>(count));
  for (double& value : values) value = zeros && random() % 3 == 0 ? 0 : real(random);
  return Literal::from_doubles(ElementType::f32, std::move(shape), values);
}

void expect_near(const Literal& found, const Literal& expected) {
  ASSERT_EQ(found.shape(), expected.shape());
  for (int64_t i = 0; i < expected.element_count(); ++i) {
    ASSERT_NEAR(found.as_double(i), expected.as_double(i), 1e-5) << i;
  }
}

class SkipUnchanged : public testing::TestWithParam<Layer> {
 protected:
  loop::Program program(const std::string& target) const {
    PipelineOptions options;
    options.round_trip = true;
    return run_pipeline(module_of(GetParam()), *find_target(target), options).program;
  }
};

TEST_P(SkipUnchanged, LikeTheEvaluator) {
  const auto [rows, columns, joined] = GetParam();
  const Module module = module_of(GetParam());
  for (const bool zeros : {true, false}) {
    const Literal w = numbers({rows, columns}, false, 1), dy = numbers({1, rows}, zeros, 2);
    const Literal x = numbers({1, columns}, zeros, 3);
    const Value expected = evaluate(module, module.function("main"), std::vector<Value>{w, dy, x});
    for (const char* target : {"x86-64-v3", "x86-64-v4", "cortex-m4"}) {
      loop::StateValues state{{"w", w}};
      const loop::RunResult found = loop::interpret(program(target), "step", {dy, x}, state);
      ASSERT_EQ(found.status, loop::RunStatus::ok);
      expect_near(state.at("w"), expected.elements.back().tensor);
      expect_near(found.outputs.at(0), expected.elements.front().tensor);
    }
  }
}

TEST_P(SkipUnchanged, RowsWithoutAGradientStayWhateverTheOperand) {
  const auto [rows, columns, joined] = GetParam();
  if (rows < 2 || columns < 256) return;  // no row, or short ones
  const Literal w = numbers({rows, columns}, false, 1);
  const Literal dy = Literal::from_doubles(ElementType::f32, {1, rows}, std::vector<double>(rows));
  const Literal x =
      Literal::from_doubles(ElementType::f32, {1, columns},
                            std::vector<double>(columns, std::numeric_limits<double>::infinity()));
  for (const char* target : {"x86-64-v4", "cortex-m4"}) {
    const loop::Program compiled = program(target);
    loop::StateValues state{{"w", w}};
    loop::interpret(compiled, "step", {dy, x}, state);
    EXPECT_TRUE(state.at("w") == w) << target << "\n" << loop::print(compiled);
  }
}

INSTANTIATE_TEST_SUITE_P(Layers, SkipUnchanged, testing::ValuesIn(kLayers),
                         [](const auto& info) { return info.param.name(); });

}  // namespace
}  // namespace backcast
