// Elements taken at places that the file tells: movements where they go in few runs, a gather where
// not, and always the same elements.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "ir/graph/evaluator.h"
#include "ir/graph/verifier.h"
#include "ir/ops/ops.h"
#include "tests/frontend/model_builder.h"

namespace backcast {
namespace {

constexpr int64_t kExtent = 11, kInner = 3;

/// x[11,3] at `places` of its first axis, or of the second of its transpose.
ImportedModel taken(const std::vector<int64_t>& places) {
  ModelBuilder m;
  m.input("x", {std::to_string(kExtent), std::to_string(kInner)}).ints("i", places);
  m.output("y").output("z");
  m.node("t", "Transpose", {"x"}, {"xt"});
  m.node("g", "Gather", {"x", "i"}, {"y"}, {ModelBuilder::integer("axis", 0)});
  m.node("h", "Gather", {"xt", "i"}, {"z"}, {ModelBuilder::integer("axis", 1)});
  return m.import();
}

int64_t count_of(const ImportedModel& model, const OpDef& op) {
  const std::vector<Node>& nodes = model.module.function("main").nodes;
  return std::count_if(nodes.begin(), nodes.end(), [&](const Node& n) { return n.op == &op; });
}

void expect_elements(const ImportedModel& model, const std::vector<int64_t>& places) {
  verify(model.module);
  std::vector<double> numbers;
  for (int64_t i = 0; i < kExtent * kInner; ++i) numbers.push_back(static_cast<double>(i));
  const Literal x = Literal::from_doubles(ElementType::f32, {kExtent, kInner}, numbers);
  const std::vector<Value> found =
      evaluate(model.module, model.module.function("main"), {Value(x)}).elements;
  const auto count = static_cast<int64_t>(places.size());
  ASSERT_EQ(found[0].tensor.shape(), (std::vector<int64_t>{count, kInner}));
  ASSERT_EQ(found[1].tensor.shape(), (std::vector<int64_t>{kInner, count}));
  for (int64_t i = 0; i < count; ++i) {
    const int64_t place = places[static_cast<size_t>(i)];
    for (int64_t k = 0; k < kInner; ++k) {
      const auto expected = static_cast<double>((place < 0 ? place + kExtent : place) * kInner + k);
      EXPECT_EQ(found[0].tensor.as_double(i * kInner + k), expected) << i;
      EXPECT_EQ(found[1].tensor.as_double(k * count + i), expected) << i;
    }
  }
}

struct Case {
  std::vector<int64_t> places;
  int64_t slices, reversals, repetitions, gathers;  // of each of the two
};

class KnownPlaces : public testing::TestWithParam<Case> {};

TEST_P(KnownPlaces, AreMovements) {
  const Case& c = GetParam();
  const ImportedModel model = taken(c.places);
  expect_elements(model, c.places);
  EXPECT_EQ(count_of(model, ops::slice), 2 * c.slices);
  EXPECT_EQ(count_of(model, ops::reverse), 2 * c.reversals);
  EXPECT_EQ(count_of(model, ops::broadcast), 2 * c.repetitions);
  EXPECT_EQ(count_of(model, ops::gather), 2 * c.gathers);
}

const Case kCases[] = {
    {{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, 0, 0, 0, 0},
    {{3}, 1, 0, 0, 0},
    {{-2, -1}, 1, 0, 0, 0},
    {{1, 4, 7, 10}, 1, 0, 0, 0},
    {{9, 6, 3, 0}, 1, 1, 0, 0},
    {{5, 5, 5}, 1, 0, 1, 0},
    {{0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8, 9, 9, 10, 10}, 0, 0, 1, 0},
    {{6, 6, 6, 4, 4, 4, 2, 2, 2}, 1, 1, 1, 0},
    // Reflected, clamped and wrapped: what lies between is all of the operand.
    {{2, 1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 9, 8}, 2, 2, 0, 0},
    {{0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 10, 10}, 2, 0, 2, 0},
    {{9, 10, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 0, 1}, 2, 0, 0, 0},
    {{0, 0, 1, 1, 2}, 2, 0, 1, 0},
    {{4, 7, 1, 9, 2, 2, 0, 10}, 0, 0, 0, 1},
};

INSTANTIATE_TEST_SUITE_P(Gather, KnownPlaces, testing::ValuesIn(kCases));

TEST(KnownPlaces, OfAnyKindGiveTheSameElements) {
  std::mt19937 random(2);
  const auto below = [&](int64_t n) { return static_cast<int64_t>(random() % uint64_t(n)); };
  int64_t movements = 0;
  for (int round = 0; round < 300; ++round) {
    std::vector<int64_t> places;
    for (int64_t run = 1 + below(4); run > 0; --run) {
      const int64_t step = below(5) - 2, repeats = 1 + below(3);
      int64_t place = below(kExtent);
      for (int64_t i = 1 + below(6); i > 0 && place >= 0 && place < kExtent; --i) {
        places.insert(places.end(), static_cast<size_t>(repeats), place);
        place += step;
      }
    }
    const ImportedModel model = taken(places);
    expect_elements(model, places);
    movements += count_of(model, ops::gather) == 0 ? 1 : 0;
  }
  EXPECT_GT(movements, 100);
  EXPECT_LT(movements, 290);
}

/// A table that may be trained is looked up, so that its update touches these rows only.
TEST(KnownPlaces, OfConstantsAreLookedUp) {
  ModelBuilder m;
  m.input("x", {"3"}).ints("table", {5, 7, 11, 13}).ints("i", {0, 1, 2}).output("y");
  m.node("g", "Gather", {"table", "i"}, {"rows"})
      .node("c", "Cast", {"rows"}, {"f"}, {ModelBuilder::integer("to", 1)});
  m.node("a", "Add", {"x", "f"}, {"y"});
  EXPECT_EQ(count_of(m.import(), ops::gather), 1);
}

TEST(KnownPlaces, NearestNeighboursByAWholeFactorAreRepeated) {
  ModelBuilder m;
  m.input("x", {"1", "2", "3", "4"}).ints("sizes", {1, 2, 6, 12}).output("y");
  m.node("r", "Resize", {"x", "", "", "sizes"}, {"y"},
         {ModelBuilder::string("coordinate_transformation_mode", "asymmetric"),
          ModelBuilder::string("nearest_mode", "floor")});
  const ImportedModel model = m.import();
  EXPECT_EQ(count_of(model, ops::gather), 0);
  EXPECT_EQ(count_of(model, ops::slice), 0);
}

/// Whether x's element at a place that `op` gives is looked up without asking for its sign.
bool takes_as_found(const std::string& op, const std::vector<std::string>& inputs,
                    const std::vector<std::string>& outputs) {
  ModelBuilder m;
  m.input("x", {"11"}).input("j", {"1"}, onnx_type::kInt64).output("y").ints("two", {2});
  m.node("find", op, inputs, outputs);
  m.node("cast", "Cast", {outputs.back()}, {"i"}, {ModelBuilder::integer("to", onnx_type::kInt32)});
  m.node("take", "Gather", {"x", "i"}, {"y"});
  const ImportedModel model = m.import();
  verify(model.module);
  return count_of(model, ops::select) == 0;
}

TEST(FoundPlaces, AreNotNegative) {
  EXPECT_TRUE(takes_as_found("ArgMin", {"x"}, {"p"}));
  EXPECT_TRUE(takes_as_found("TopK", {"x", "two"}, {"v", "p"}));
  EXPECT_FALSE(takes_as_found("Identity", {"j"}, {"p"}));
}

}  // namespace
}  // namespace backcast
