// Random tensors: their moments, and what they are made of.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "ir/graph/evaluator.h"
#include "ir/graph/verifier.h"
#include "tests/frontend/model_builder.h"

namespace backcast {
namespace {

using ::testing::HasSubstr;
using Numbers = std::vector<double>;

Value seed(uint32_t value) { return Literal::scalar(ElementType::u32, value); }

constexpr auto real = ModelBuilder::real;

Numbers results_of(const ImportedModel& model, const std::vector<Value>& inputs) {
  verify(model.module);
  return evaluate(model.module, model.module.function("main"), inputs).tensor.as_doubles();
}

constexpr int64_t kCount = 20000;

ModelBuilder drawing(const std::string& op, std::vector<OnnxAttribute> attributes) {
  attributes.push_back(ModelBuilder::integers("shape", {kCount}));
  ModelBuilder m;
  return m.output("y").node("draw", op, {}, {"y"}, attributes);
}

struct Moments {
  double mean, variance, least, most, neighbours;
};

Moments moments_of(const Numbers& x) {
  const double n = static_cast<double>(x.size());
  Moments m{0, 0, x[0], x[0], 0};
  for (const double v : x) m.mean += v;
  m.mean /= n;
  for (size_t i = 0; i < x.size(); ++i) {
    m.variance += (x[i] - m.mean) * (x[i] - m.mean) / n;
    m.least = std::min(m.least, x[i]);
    m.most = std::max(m.most, x[i]);
    if (i > 0) m.neighbours += (x[i] - m.mean) * (x[i - 1] - m.mean) / n;
  }
  return m;
}

// Bounds are five standard errors of so many numbers.
const double kFive = 5 / std::sqrt(static_cast<double>(kCount));

TEST(Random, NormalNumbersHaveTheirMoments) {
  for (const int64_t type : {onnx_type::kFloat, onnx_type::kDouble}) {
    const ImportedModel model = drawing("RandomNormal", {real("mean", 2), real("scale", 3),
                                                         ModelBuilder::integer("dtype", type)})
                                    .import();
    const Moments m = moments_of(results_of(model, {seed(7)}));
    EXPECT_NEAR(m.mean, 2, 3 * kFive);
    EXPECT_NEAR(m.variance, 9, 9 * std::sqrt(2) * kFive);
    EXPECT_NEAR(m.neighbours, 0, 9 * kFive);
    EXPECT_GT(m.most, 2 + 3 * 3);
    EXPECT_LT(m.least, 2 - 3 * 3);
  }
}

TEST(Random, UniformNumbersFillTheirRange) {
  for (const int64_t type : {onnx_type::kFloat, onnx_type::kDouble}) {
    const ImportedModel model = drawing("RandomUniform", {real("low", -1), real("high", 3),
                                                          ModelBuilder::integer("dtype", type)})
                                    .import();
    const Moments m = moments_of(results_of(model, {seed(7)}));
    EXPECT_NEAR(m.mean, 1, 4 / std::sqrt(12) * kFive);
    EXPECT_NEAR(m.variance, 16.0 / 12, 1.2 * kFive);
    EXPECT_NEAR(m.neighbours, 0, 16.0 / 12 * kFive);
    EXPECT_GE(m.least, -1);
    EXPECT_LT(m.least, -0.99);
    EXPECT_LT(m.most, 3);
    EXPECT_GT(m.most, 2.99);
  }
}

TEST(Random, BernoulliTrialsFollowTheirProbabilities) {
  ModelBuilder m;
  m.input("p", {std::to_string(kCount)}).output("y").node("draw", "Bernoulli", {"p"}, {"y"});
  const ImportedModel model = m.import();
  for (const double p : {0.0, 0.25, 1.0}) {
    const Literal all =
        Literal::from_doubles(ElementType::f32, {kCount}, Numbers(size_t{kCount}, p));
    const Moments moments = moments_of(results_of(model, {all, seed(3)}));
    EXPECT_NEAR(moments.mean, p, std::sqrt(p * (1 - p)) * kFive);
    EXPECT_NEAR(moments.variance, p * (1 - p), kFive);
  }
}

TEST(Random, ClassesAreDrawnByTheirWeights) {
  ModelBuilder m;
  m.input("w", {"2", "3"})
      .output("y")
      .node("draw", "Multinomial", {"w"}, {"y"}, {ModelBuilder::integer("sample_size", kCount)});
  const Numbers shares{0.2, 0, 0.8, 0.5, 0.25, 0.25};
  Numbers weights;
  for (const double share : shares) weights.push_back(share == 0 ? -80 : std::log(share) + 2);
  const Numbers drawn =
      results_of(m.import(), {Literal::from_doubles(ElementType::f32, {2, 3}, weights), seed(1)});
  for (size_t row = 0; row < 2; ++row) {
    for (size_t c = 0; c < 3; ++c) {
      const auto first = drawn.begin() + static_cast<int64_t>(row) * kCount;
      const double share = shares[row * 3 + c];
      EXPECT_NEAR(static_cast<double>(std::count(first, first + kCount, c)) / kCount, share,
                  std::sqrt(share * (1 - share)) * kFive);
    }
  }
}

TEST(Random, EqualSeedsGiveEqualNumbers) {
  const ImportedModel model = drawing("RandomNormal", {}).import();
  EXPECT_EQ(model.input_names, std::vector<std::string>{"seed"});
  EXPECT_THAT(model.notes, testing::Contains(HasSubstr("\"seed\" is an input more")));
  EXPECT_EQ(results_of(model, {seed(5)}), results_of(model, {seed(5)}));
  EXPECT_NE(results_of(model, {seed(5)}), results_of(model, {seed(6)}));
}

TEST(Random, NodesDrawNumbersOfTheirOwn) {
  ModelBuilder m;
  m.input("x", {"50"}).output("y");
  m.node("one", "RandomNormalLike", {"x"}, {"a"}).node("other", "RandomNormalLike", {"x"}, {"b"});
  m.node("sub", "Sub", {"a", "b"}, {"y"});
  const Literal x = Literal::from_doubles(ElementType::f32, {50}, Numbers(50, 1));
  EXPECT_THAT(results_of(m.import(), {x, seed(0)}), testing::Each(testing::Ne(0)));
}

TEST(Random, ANodeMayHaveItsSeed) {
  const ImportedModel one = drawing("RandomNormal", {real("seed", 1)}).import();
  const ImportedModel other = drawing("RandomNormal", {real("seed", 2)}).import();
  EXPECT_TRUE(one.input_names.empty());
  EXPECT_NE(results_of(one, {}), results_of(other, {}));
}

TEST(Random, TheSeedMayBeAConstant) {
  ImportOptions options;
  options.constants["seed"] = {5};
  const ImportedModel fixed = drawing("RandomNormal", {}).import(options);
  EXPECT_TRUE(fixed.input_names.empty());
  EXPECT_EQ(results_of(fixed, {}), results_of(drawing("RandomNormal", {}).import(), {seed(5)}));
}

TEST(Random, TrainingDrawsFromItsState) {
  ImportOptions options;
  options.mode = ImportMode::training;
  const ImportedModel model = drawing("RandomNormal", {real("seed", 1)}).import(options);
  EXPECT_EQ(model.generator, "generator");
  const Value key = Literal::from_doubles(ElementType::u32, {2}, {1, 2});
  const auto at_step = [&](int64_t step) {
    return results_of(model, {key, Literal::scalar(ElementType::i32, static_cast<double>(step))});
  };
  EXPECT_EQ(at_step(1), at_step(1));
  EXPECT_NE(at_step(1), at_step(2));
}

TEST(Random, LoopsOfKnownTripsDrawAnew) {
  ModelBuilder body;
  body.input("i", {}, onnx_type::kInt64).input("go", {}, onnx_type::kBool);
  body.node("draw", "RandomUniform", {}, {"r"}, {ModelBuilder::integers("shape", {1})});
  body.output("go", {}, onnx_type::kBool).output("r", {"1"});
  ModelBuilder m;
  m.ints("n", {3}).output("y").node("loop", "Loop", {"n", ""}, {"y"},
                                    {ModelBuilder::body("body", body)});
  const Numbers drawn = results_of(m.import(), {seed(1)});
  ASSERT_EQ(drawn.size(), 3u);
  EXPECT_NE(drawn[0], drawn[1]);
  EXPECT_NE(drawn[1], drawn[2]);
  ModelBuilder endless = m;
  endless.input("trips", {}, onnx_type::kInt64);
  endless.model().graph.nodes[0].inputs[0] = "trips";
  EXPECT_THAT(complaint_of(endless), HasSubstr("node \"loop/draw\" (RandomUniform): draws inside"));
}

}  // namespace
}  // namespace backcast
