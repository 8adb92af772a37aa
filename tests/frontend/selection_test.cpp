// Tensors as large as the data has it: a symbol stands for their extent, and values tell it. What
// is known at import stays a number.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/graph/evaluator.h"
#include "ir/graph/verifier.h"
#include "ir/ops/ops.h"
#include "tests/frontend/model_builder.h"

namespace backcast {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const Function& main_of(const ImportedModel& model) { return model.module.function("main"); }

/// The rows of x[4,2] whose number stands in NonZero of c[4].
ModelBuilder chosen_rows() {
  ModelBuilder m;
  m.input("x", {"4", "2"}).output("y").ints("flat", {-1});
  m.node("n", "NonZero", {"c"}, {"places"});
  m.node("r", "Reshape", {"places", "flat"}, {"rows"});
  m.node("g", "Gather", {"x", "rows"}, {"y"}, {ModelBuilder::integer("axis", 0)});
  return m;
}

Literal numbers(std::vector<int64_t> shape, const std::vector<double>& values) {
  return Literal::from_doubles(ElementType::f32, std::move(shape), values);
}

TEST(Selection, ASymbolIsTheExtent) {
  ModelBuilder m = chosen_rows();
  m.input("c", {"4"});
  const ImportedModel model = m.import();
  verify(model.module);
  ASSERT_TRUE(model.module.symbols.contains("places_count"));
  EXPECT_EQ(model.module.symbols.at("places_count"), (DimRange{0, 4}));
  EXPECT_EQ(main_of(model).result_type().to_string(), "f32[places_count,2]");
  const Literal x = numbers({4, 2}, {0, 1, 2, 3, 4, 5, 6, 7});
  const auto rows = [&](const std::vector<double>& c) {
    return evaluate(model.module, main_of(model), {Value(x), Value(numbers({4}, c))}).tensor;
  };
  EXPECT_EQ(rows({0, 2, 0, -1}), numbers({2, 2}, {2, 3, 6, 7}));
  EXPECT_EQ(rows({0, 0, 0, 0}), numbers({0, 2}, {}));
  EXPECT_EQ(rows({1, 1, 1, 1}), x);
}

TEST(Selection, WhatIsKnownStaysANumber) {
  ModelBuilder m = chosen_rows();
  m.ints("c", {0, 7, 0, 1});
  const ImportedModel model = m.import();
  EXPECT_TRUE(model.module.symbols.empty());
  EXPECT_EQ(main_of(model).result_type().to_string(), "f32[2,2]");
}

TEST(Selection, AKnownConditionMayHaveAnotherLength) {
  const auto kept = [](const std::vector<int64_t>& condition) {
    ModelBuilder m;
    m.input("x", {"4", "2"}).output("y").ints("c", condition);
    m.node("n", "Compress", {"x", "c"}, {"y"}, {ModelBuilder::integer("axis", 0)});
    return m;
  };
  for (const std::vector<int64_t>& condition : {{0, 1}, std::vector<int64_t>{0, 1, 0, 0, 0, 0}}) {
    const ImportedModel model = kept(condition).import();
    const Literal x = numbers({4, 2}, {0, 1, 2, 3, 4, 5, 6, 7});
    EXPECT_EQ(evaluate(model.module, main_of(model), {Value(x)}).tensor, numbers({1, 2}, {2, 3}));
  }
  EXPECT_THAT(complaint_of(kept({0, 0, 0, 0, 1})),
              HasSubstr("the condition is longer than the axis"));
}

TEST(Selection, TwoChoicesHaveSymbolsOfTheirOwn) {
  ModelBuilder m;
  m.input("x", {"3"}).output("y").output("z");
  m.node("a", "NonZero", {"x"}, {"y"}).node("b", "NonZero", {"x"}, {"z"});
  const ImportedModel model = m.import();
  EXPECT_EQ(main_of(model).result_type().to_string(), "(i64[1,y_count], i64[1,z_count])");
}

/// With cases of ONNX's own, which have other shapes, node_cases runs Unique.
TEST(Selection, UniqueRowsOfOneElement) {
  ModelBuilder m;
  m.input("x", {"4", "1"}).output("y").output("first").output("inverse").output("counts");
  m.node("u", "Unique", {"x"}, {"y", "first", "inverse", "counts"},
         {ModelBuilder::integer("axis", 0), ModelBuilder::integer("sorted", 0)});
  const ImportedModel model = m.import();
  const std::vector<Value> found =
      evaluate(model.module, main_of(model), {Value(numbers({4, 1}, {5, 3, 5, 3}))}).elements;
  EXPECT_EQ(found[0].tensor, numbers({2, 1}, {5, 3}));
  EXPECT_THAT(found[1].tensor.as_ints(), ElementsAre(0, 1));
  EXPECT_THAT(found[2].tensor.as_ints(), ElementsAre(0, 1, 0, 1));
  EXPECT_THAT(found[3].tensor.as_ints(), ElementsAre(2, 2));
}

/// Of equal scores the first box goes first, and what is no number is never taken.
TEST(Selection, BoxesInTheOrderOfTheirScores) {
  ModelBuilder m;
  m.input("boxes", {"1", "4", "4"}).input("scores", {"1", "1", "4"}).ints("most", {3}).output("y");
  m.node("n", "NonMaxSuppression", {"boxes", "scores", "most"}, {"y"});
  const ImportedModel model = m.import();
  const Literal boxes = numbers({1, 4, 4}, {0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7});
  const auto kept = [&](const std::vector<double>& scores) {
    const std::vector<Value> operands = {Value(boxes), Value(numbers({1, 1, 4}, scores))};
    return evaluate(model.module, main_of(model), operands).tensor.as_ints();
  };
  EXPECT_THAT(kept({1, 2, 2, 2}), ElementsAre(0, 0, 1, 0, 0, 2, 0, 0, 3));
  EXPECT_THAT(kept({NAN, 1, -INFINITY, NAN}), ElementsAre(0, 0, 1, 0, 0, 2));
}

/// More than are searched at once.
TEST(Selection, ManyBoxesInTheOrderOfTheirScores) {
  constexpr int64_t kBoxes = 100;
  ModelBuilder m;
  m.input("boxes", {"1", "100", "4"}).input("scores", {"1", "1", "100"}).ints("most", {kBoxes});
  m.output("y").node("n", "NonMaxSuppression", {"boxes", "scores", "most"}, {"y"});
  const ImportedModel model = m.import();
  std::vector<double> corners, scores;
  std::vector<int64_t> expected;
  for (int64_t i = 0; i < kBoxes; ++i) {
    const auto x = static_cast<double>(2 * i);
    corners.insert(corners.end(), {x, x, x + 1, x + 1});
    scores.push_back(static_cast<double>(i % 3));
  }
  for (int64_t score = 2; score >= 0; --score) {
    for (int64_t i = score; i < kBoxes; i += 3) expected.insert(expected.end(), {0, 0, i});
  }
  const std::vector<Value> operands = {Value(numbers({1, kBoxes, 4}, corners)),
                                       Value(numbers({1, 1, kBoxes}, scores))};
  EXPECT_EQ(evaluate(model.module, main_of(model), operands).tensor.as_ints(), expected);
}

TEST(Complaints, OfSelections) {
  ModelBuilder scalar;
  scalar.input("x", {}).output("y").node("n", "NonZero", {"x"}, {"y"});
  EXPECT_THAT(complaint_of(scalar), HasSubstr("the input is a scalar; give it a dimension"));
  ModelBuilder longer;
  longer.input("x", {"2"}).input("c", {"3"}, onnx_type::kBool).output("y");
  longer.node("n", "Compress", {"x", "c"}, {"y"}, {ModelBuilder::integer("axis", 0)});
  EXPECT_THAT(complaint_of(longer), HasSubstr("the condition is longer than the axis"));
  ModelBuilder boxes;
  boxes.input("b", {"1", "5", "4"}).input("s", {"1", "2", "6"}).output("y");
  boxes.node("n", "NonMaxSuppression", {"b", "s"}, {"y"});
  EXPECT_THAT(complaint_of(boxes), HasSubstr("different numbers of boxes"));
}

}  // namespace
}  // namespace backcast
