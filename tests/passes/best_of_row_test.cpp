// top_k finds the evaluator's elements in the evaluator's order, many of them equal, in both
// emitters' code: rows of any length along any dimension, as few or as many as there are.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

#include "ir/graph/text.h"
#include "tests/passes/random_convolution.h"

namespace backcast {
namespace {

struct Rows {
  std::vector<int64_t> shape;
  int64_t axis, k;
};

void expect_best(const Rows& rows, const std::string& type, bool largest, int64_t values) {
  std::vector<int64_t> result = rows.shape;
  result[static_cast<size_t>(rows.axis)] = rows.k;
  const std::string out = fmt::format("[{}]", fmt::join(result, ","));
  const Module module = parse_module(
      fmt::format("func @main(%x: {0}[{1}]) -> ({0}{2}, i64{2}) {{\n"
                  "  %t = top_k %x {{k={3}, axis={4}, largest={5}}}\n  return %t\n}}\n",
                  type, fmt::join(rows.shape, ","), out, rows.k, rows.axis, largest));
  std::mt19937 random(9);
  int64_t count = 1;
  for (const int64_t extent : rows.shape) count *= extent;
  std::vector<double> x(static_cast<size_t>(count));
  for (double& value : x) value = static_cast<double>(random() % static_cast<uint64_t>(values));
  const ElementType element = module.function("main").type(ValueId(0)).tensor().element;
  expect_exact_when_compiled(module, {Literal::from_doubles(element, rows.shape, x)});
}

class TopK : public testing::TestWithParam<bool> {};

TEST_P(TopK, OfTheEvaluatorWhenCompiled) {
  const std::vector<Rows> all = {{{1, 97}, 1, 1},    {{3, 41}, 1, 41}, {{1, 1}, 1, 1},
                                 {{2, 64, 3}, 1, 7}, {{5, 8}, 0, 2},   {{1, 300}, 1, 150},
                                 {{4, 2}, 1, 2},     {{1, 33}, 1, 0}};
  for (const Rows& rows : all) {
    expect_best(rows, "f32", GetParam(), 1000);
    expect_best(rows, "f32", GetParam(), 4);
    expect_best(rows, "i32", GetParam(), 20);
  }
}

INSTANTIATE_TEST_SUITE_P(BestOfRow, TopK, testing::Bool());

}  // namespace
}  // namespace backcast
