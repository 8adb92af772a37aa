// ai.onnx.ml: trees, support vectors, linear models and encoders against values worked out by hand,
// and complaints.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "ir/graph/error.h"
#include "ir/graph/evaluator.h"
#include "tests/frontend/model_builder.h"

namespace backcast {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

OnnxAttribute floats(const std::string& name, const std::vector<float>& values) {
  OnnxAttribute a;
  a.name = name;
  a.kind = OnnxAttribute::Kind::reals;
  a.floats = values;
  return a;
}
OnnxAttribute strings(const std::string& name, const std::vector<std::string>& values) {
  OnnxAttribute a;
  a.name = name;
  a.kind = OnnxAttribute::Kind::strings;
  a.strings = values;
  return a;
}

/// One node of x: f32[4,2].
ModelBuilder model_of(const std::string& op, const std::vector<std::string>& outputs,
                      const std::vector<OnnxAttribute>& attributes) {
  ModelBuilder m(17);
  m.model().opsets["ai.onnx.ml"] = 3;
  m.input("x", {"4", "2"}).node("n", op, {"x"}, outputs, attributes);
  m.model().graph.nodes[0].domain = "ai.onnx.ml";
  for (const std::string& output : outputs) m.output(output, {"?"});
  return m;
}

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

std::vector<std::vector<double>> results_of(const ModelBuilder& m, const std::vector<double>& x = {
                                                                       0, 0, 1, 0, 0, 1, kNan, 1}) {
  const ImportedModel model = m.import();
  const Value value = evaluate(model.module, model.module.function("main"),
                               {Literal::from_doubles(ElementType::f32, {4, 2}, x)});
  std::vector<std::vector<double>> results;
  for (const Value& part : value.is_tuple ? value.elements : std::vector<Value>{value}) {
    results.emplace_back();
    for (int64_t i = 0; i < part.tensor.element_count(); ++i) {
      results.back().push_back(part.tensor.as_double(i));
    }
  }
  return results;
}

/// x0 <= 0.5 ? (x1 > 0.5 ? 2 : 3) : 4, and a second tree of one leaf, 10.
std::vector<OnnxAttribute> two_trees(int64_t missing) {
  return {ModelBuilder::integers("nodes_treeids", {0, 0, 0, 0, 0, 7}),
          ModelBuilder::integers("nodes_nodeids", {0, 1, 2, 3, 4, 0}),
          ModelBuilder::integers("nodes_featureids", {0, 1, 0, 0, 0, 0}),
          floats("nodes_values", {0.5f, 0.5f, 0, 0, 0, 0}),
          strings("nodes_modes", {"BRANCH_LEQ", "BRANCH_GT", "LEAF", "LEAF", "LEAF", "LEAF"}),
          ModelBuilder::integers("nodes_truenodeids", {1, 2, 0, 0, 0, 0}),
          ModelBuilder::integers("nodes_falsenodeids", {4, 3, 0, 0, 0, 0}),
          ModelBuilder::integers("nodes_missing_value_tracks_true", {missing, 0, 0, 0, 0, 0})};
}
std::vector<OnnxAttribute> with(std::vector<OnnxAttribute> a, const std::vector<OnnxAttribute>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}
std::vector<OnnxAttribute> leaves(const std::string& kind, const std::vector<int64_t>& of,
                                  const std::vector<float>& weights) {
  return {ModelBuilder::integers(kind + "_treeids", {0, 0, 0, 7}),
          ModelBuilder::integers(kind + "_nodeids", {2, 3, 4, 0}),
          ModelBuilder::integers(kind + "_ids", of), floats(kind + "_weights", weights)};
}

TEST(Trees, DeepAndFlatOnesAreWalkedTogether) {
  for (const int64_t missing : {0, 1}) {
    const ModelBuilder m =
        model_of("TreeEnsembleRegressor", {"y"},
                 with(two_trees(missing), leaves("target", {0, 0, 0, 0}, {2, 3, 4, 10})));
    EXPECT_THAT(results_of(m)[0], ElementsAre(13, 14, 12, missing ? 12 : 14));
  }
}

TEST(Trees, ClassesByTheHighestScore) {
  const std::vector<OnnxAttribute> labels = {
      ModelBuilder::integers("classlabels_int64s", {5, 6, 9})};
  const ModelBuilder m =
      model_of("TreeEnsembleClassifier", {"label", "scores"},
               with(with(two_trees(0), labels), leaves("class", {0, 1, 2, 1}, {2, 1, 4, 0.5f})));
  const std::vector<std::vector<double>> results = results_of(m);
  EXPECT_THAT(results[0], ElementsAre(6, 9, 5, 9));
  EXPECT_THAT(results[1], ElementsAre(0, 1.5, 0, 0, 0.5, 4, 2, 0.5, 0, 0, 0.5, 4));
}

TEST(Trees, WeightsOfOneClassDecideBetweenTwo) {
  const std::vector<OnnxAttribute> labels = {ModelBuilder::integers("classlabels_int64s", {0, 1})};
  const auto results = [&](const std::vector<float>& weights) {
    return results_of(
        model_of("TreeEnsembleClassifier", {"label", "scores"},
                 with(with(two_trees(0), labels), leaves("class", {0, 0, 0, 0}, weights))));
  };
  const std::vector<std::vector<double>> shares = results({0, 0.25f, 0.5f, 0.25f});
  EXPECT_THAT(shares[0], ElementsAre(0, 1, 0, 1));
  EXPECT_THAT(shares[1], ElementsAre(0.5, 0.5, 0.25, 0.75, 0.75, 0.25, 0.25, 0.75));
  const std::vector<std::vector<double>> margins = results({-1, 1, 2, 0.5f});
  EXPECT_THAT(margins[0], ElementsAre(1, 1, 0, 1));
  EXPECT_THAT(margins[1], ElementsAre(-1.5, 1.5, -2.5, 2.5, 0.5, -0.5, -2.5, 2.5));
}

TEST(Trees, SharesOfTheSecondClassAlone) {
  const std::vector<OnnxAttribute> labels = {ModelBuilder::integers("classlabels_int64s", {0, 1})};
  const std::vector<std::vector<double>> results = results_of(model_of(
      "TreeEnsembleClassifier", {"label", "scores"},
      with(with(two_trees(0), labels), leaves("class", {1, 1, 1, 1}, {0, 0.25f, 0.5f, 0.25f}))));
  EXPECT_THAT(results[0], ElementsAre(0, 1, 0, 1));
  EXPECT_THAT(results[1], ElementsAre(0, 0.5, 0, 0.75, 0, 0.25, 0, 0.75));
}

TEST(Trees, NodesThatFormNoTree) {
  std::vector<OnnxAttribute> loop = two_trees(0);
  loop[5] = ModelBuilder::integers("nodes_truenodeids", {1, 0, 0, 0, 0, 0});
  const ModelBuilder m = model_of("TreeEnsembleRegressor", {"y"},
                                  with(loop, leaves("target", {0, 0, 0, 0}, {2, 3, 4, 10})));
  EXPECT_THROW(static_cast<void>(m.import()), CompileError);
}

TEST(Linear, OneRowOfCoefficientsForTwoClasses) {
  const auto results = [](const std::string& transform) {
    return results_of(model_of("LinearClassifier", {"label", "scores"},
                               {ModelBuilder::integers("classlabels_ints", {3, 4}),
                                floats("coefficients", {2, -1}), floats("intercepts", {0}),
                                ModelBuilder::string("post_transform", transform)}),
                      {0, 0, 1, 0, 0, 1, 1, 1});
  };
  EXPECT_THAT(results("NONE")[0], ElementsAre(3, 4, 3, 4));
  EXPECT_THAT(results("NONE")[1], ElementsAre(1, 0, -1, 2, 2, -1, 0, 1));
  EXPECT_NEAR(results("LOGISTIC")[1][2] + results("LOGISTIC")[1][3], 1, 1e-6);
}

TEST(Linear, PreparedFeatures) {
  EXPECT_THAT(
      results_of(model_of("Scaler", {"y"}, {floats("offset", {1}), floats("scale", {2, 4})}),
                 {0, 1, 2, 3, 4, 5, 6, 7})[0],
      ElementsAre(-2, 0, 2, 8, 6, 16, 10, 24));
  EXPECT_THAT(results_of(model_of("Normalizer", {"y"}, {ModelBuilder::string("norm", "L2")}),
                         {3, 4, 0, 0, -6, 8, 0, 2})[0],
              ElementsAre(0.6f, 0.8f, 0, 0, -0.6f, 0.8f, 0, 1));
  OnnxAttribute nan;
  nan.name = "replaced_value_float";
  nan.kind = OnnxAttribute::Kind::real;
  nan.f = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THAT(
      results_of(model_of("Imputer", {"y"}, {floats("imputed_value_floats", {7, 8}), nan}))[0],
      ElementsAre(0, 0, 1, 0, 0, 1, 7, 1));
}

/// Two classes of one vector each, (0, 0) and (1, 0), with a linear kernel: x0 - 0.5 and its
/// negative.
std::vector<OnnxAttribute> two_vectors(const std::vector<float>& coefficients, float rho) {
  return {ModelBuilder::integers("classlabels_ints", {3, 4}),
          ModelBuilder::integers("vectors_per_class", {1, 1}),
          floats("support_vectors", {0, 0, 1, 0}), floats("coefficients", coefficients),
          floats("rho", {rho})};
}

TEST(SupportVectors, TwoClassesByTheSideOfTheLine) {
  const std::vector<double> x = {0, 0, 1, 0, 0, 1, 3, 1};
  const std::vector<std::vector<double>> results =
      results_of(model_of("SVMClassifier", {"label", "scores"}, two_vectors({2, -1}, 0.5f)), x);
  EXPECT_THAT(results[0], ElementsAre(3, 4, 3, 4));  // above zero is the first
  EXPECT_THAT(results[1], ElementsAre(-0.5, 0.5, 0.5, -0.5, -0.5, 0.5, 2.5, -2.5));
}

TEST(SupportVectors, ProbabilitiesOfTwoClassesAreThoseOfTheirPair) {
  const std::vector<double> x = {0, 0, 1, 0, 0, 1, 3, 1};
  const std::vector<std::vector<double>> results = results_of(
      model_of(
          "SVMClassifier", {"label", "scores"},
          with(two_vectors({2, -1}, 0.5f), {floats("prob_a", {-2}), floats("prob_b", {0.5f})})),
      x);
  for (size_t i = 0; i < 4; ++i) {
    const double score = 0.5 - x[2 * i];
    const double first = 1 / (1 + std::exp(-2 * score + 0.5));
    EXPECT_NEAR(results[1][2 * i], first, 0.0025);  // where the iteration stops
    EXPECT_NEAR(results[1][2 * i] + results[1][2 * i + 1], 1, 1e-6);
  }
}

TEST(SupportVectors, CoefficientsOfFeaturesAlone) {
  const auto labels = [](const std::vector<float>& coefficients) {
    return results_of(model_of("SVMClassifier", {"label", "scores"},
                               {ModelBuilder::integers("classlabels_ints", {3, 4}),
                                floats("rho", {-1.5f}), floats("coefficients", coefficients)}),
                      {0, 0, 1, 0, 2, 0, 3, 1})[0];
  };
  EXPECT_THAT(labels({1, 0, 0, 1}), ElementsAre(3, 3, 4, 4));   // from a score of 0.5 on
  EXPECT_THAT(labels({1, 0, -1, 1}), ElementsAre(3, 3, 4, 4));  // above zero
}

TEST(SupportVectors, OneClassOrAnother) {
  OnnxAttribute one_class = ModelBuilder::integer("one_class", 1);
  const std::vector<double> results =
      results_of(model_of("SVMRegressor", {"y"},
                          {ModelBuilder::integer("n_supports", 1), one_class,
                           floats("support_vectors", {1, 0}), floats("coefficients", {1}),
                           floats("rho", {-0.5f}), floats("kernel_params", {1, 0, 0}),
                           ModelBuilder::string("kernel_type", "RBF")}),
                 {0, 0, 1, 0, 1, 2, 1, 0.5})[0];
  EXPECT_THAT(results, ElementsAre(-1, 1, -1, 1));
}

TEST(Encoders, ValuesOfKeys) {
  const std::vector<double> results =
      results_of(model_of("LabelEncoder", {"y"},
                          {floats("keys_floats", {1, static_cast<float>(kNan)}),
                           ModelBuilder::integers("values_int64s", {7, 9}),
                           ModelBuilder::integer("default_int64", 5)}),
                 {0, 1, kNan, 2, 1, 1, 0, 0})[0];
  EXPECT_THAT(results, ElementsAre(5, 7, 9, 5, 7, 7, 5, 5));
}

TEST(Encoders, FeaturesSideBySide) {
  ModelBuilder m(17);
  m.model().opsets["ai.onnx.ml"] = 3;
  m.input("x", {"4", "2"})
      .node("n", "FeatureVectorizer", {"x", "x"}, {"y"},
            {ModelBuilder::integers("inputdimensions", {1, 3})});
  m.model().graph.nodes[0].domain = "ai.onnx.ml";
  m.output("y", {"4", "4"});
  EXPECT_THAT(results_of(m, {1, 2, 3, 4, 5, 6, 7, 8})[0],
              ElementsAre(1, 1, 2, 0, 3, 3, 4, 0, 5, 5, 6, 0, 7, 7, 8, 0));
}

/// A C library has no maps: what is in them comes as columns.
TEST(Encoders, MapsAreColumns) {
  const std::vector<double> x = {1, 2, 3, 4, 5, 6, 7, 8};
  EXPECT_EQ(
      results_of(model_of("ZipMap", {"y"}, {ModelBuilder::integers("classlabels_int64s", {0, 1})}),
                 x)[0],
      x);
}

TEST(Labels, WordsAreNumbered) {
  const ModelBuilder m = model_of("LinearClassifier", {"label", "scores"},
                                  {strings("classlabels_strings", {"cat", "dog"}),
                                   floats("coefficients", {2, -1}), floats("intercepts", {0})});
  EXPECT_THAT(results_of(m, {0, 0, 1, 0, 0, 1, 1, 1})[0], ElementsAre(0, 1, 0, 1));
  EXPECT_THAT(m.import().notes, ElementsAre(HasSubstr("counted from 0: cat, dog")));
}

TEST(Complaints, WhatCannotBeSaysWhatToDo) {
  EXPECT_THAT(complaint_of(model_of("LabelEncoder", {"y"},
                                    {strings("keys_strings", {"cat"}),
                                     ModelBuilder::integers("values_int64s", {1})})),
              HasSubstr("strings are not supported"));
  EXPECT_THAT(complaint_of(model_of(
                  "SVMClassifier", {"label", "scores"},
                  {ModelBuilder::integers("classlabels_ints", {3, 4}), floats("rho", {0}),
                   ModelBuilder::integers("vectors_per_class", {2, 1}),
                   floats("support_vectors", {0, 0, 1, 0}), floats("coefficients", {1, 1, -1})})),
              HasSubstr("attribute \"support_vectors\" has 4 values and should have 3 of 2"));
}

}  // namespace
}  // namespace backcast
