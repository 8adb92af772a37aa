// Factors of neighbouring steps that are lanes of one load: products of many shapes against the
// evaluator, on small odd integers, whose sums are exact in any order.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

#include "ir/graph/evaluator.h"
#include "ir/graph/text.h"
#include "ir/loop/interpreter.h"
#include "ir/loop/text.h"
#include "ir/target/target_info.h"
#include "passes/pipeline.h"

namespace backcast {
namespace {

/// x[rows, steps] · w[steps, columns] in f32, or of i16 in i32.
Module product(const std::string& factor, int64_t rows, int64_t steps, int64_t columns) {
  const std::string head =
      fmt::format("func @main(%x: {0}[{1},{2}], %w: {0}[{2},{3}]) -> {4}[{1},{3}] {{\n", factor,
                  rows, steps, columns, factor == "f32" ? "f32" : "i32");
  const std::string widened =
      factor == "f32" ? "" : "  %a = cast %x {to=i32}\n  %b = cast %w {to=i32}\n";
  const char* operands = factor == "f32" ? "%x, %w" : "%a, %b";
  return parse_module(fmt::format(
      "{}{}  %y = dot_general {} {{lhs_contract=[1], rhs_contract=[0]}}\n  return %y\n}}\n", head,
      widened, operands));
}

Literal numbers(const std::string& type, int64_t rows, int64_t columns, std::mt19937& random) {
  std::vector<double> values;
  for (int64_t i = 0; i < rows * columns; ++i) {
    values.push_back(2 * static_cast<double>(random() % 100) - 99);
  }
  return Literal::from_doubles(type == "f32" ? ElementType::f32 : ElementType::i16, {rows, columns},
                               values);
}

TEST(JoinFactors, EveryShape) {
  std::mt19937 random(7);
  PipelineOptions options;
  options.round_trip = true;
  const TargetInfo& target = *find_target("armv7-neon");
  for (const char* factor : {"f32", "i16"}) {
    for (const int64_t rows : {1, 2, 3, 5, 8, 13}) {
      for (const int64_t steps : {1, 3, 4, 7, 8, 12, 20, 34}) {
        for (const int64_t columns : {1, 3, 4, 8, 12, 19}) {
          const Module module = product(factor, rows, steps, columns);
          const std::vector<Value> inputs = {numbers(factor, rows, steps, random),
                                             numbers(factor, steps, columns, random)};
          const loop::Program program = run_pipeline(module, target, options).program;
          const std::string name = fmt::format("{} {}x{}x{}", factor, rows, steps, columns);
          const bool joins = loop::print(program).find("; 3, 3, 3, 3)") != std::string::npos;
          EXPECT_EQ(joins, steps % 4 == 0 && steps > 4 && columns >= 4) << name;
          const Value expected = evaluate(module, module.function("main"), inputs);
          EXPECT_EQ(loop::interpret(program, "run", {inputs[0].tensor, inputs[1].tensor}).at(0),
                    expected.tensor)
              << name;
        }
      }
    }
  }
}

}  // namespace
}  // namespace backcast
