// Models imported for training and trained: running statistics, dropout.
#include "frontend/import.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "frontend/separate_statistics.h"
#include "ir/graph/error.h"
#include "ir/graph/verifier.h"
#include "passes/graph/differentiate.h"
#include "passes/graph/promote.h"
#include "passes/train/training.h"
#include "tests/frontend/model_builder.h"
#include "tests/train/trainer.h"

namespace backcast {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pointwise;

OnnxTensor floats(const std::string& name, const std::vector<int64_t>& dims,
                  const std::vector<float>& values) {
  OnnxTensor tensor;
  tensor.name = name;
  tensor.data_type = onnx_type::kFloat;
  tensor.dims = dims;
  auto held = std::make_shared<std::vector<float>>(values);
  tensor.float_data = *held;
  tensor.owner = held;
  return tensor;
}

constexpr auto real = ModelBuilder::real;

TrainingModels three_imports(const ModelBuilder& model) {
  const auto import = [&](ImportMode mode) {
    ImportOptions options;
    options.mode = mode;
    ImportedModel imported = model.import(options);
    verify(imported.module);
    return imported;
  };
  const ImportedModel inference = import(ImportMode::inference);
  const ImportedModel training = import(ImportMode::training);
  return {inference.module,
          inference.module,
          training.module,
          training.parameter_names,
          training.running_statistics,
          training.generator,
          training.step};
}

TrainingSpec mean_of_output() {
  TrainingSpec spec;
  spec.loss.kind = LossKind::mse;
  return spec;
}

ModelBuilder batch_norm_model(bool written_for_training) {
  ModelBuilder m;
  m.input("x", {"4", "2"}).output("y");
  for (const auto& [name, values] : std::map<std::string, std::vector<float>>{
           {"mean", {0.5, -1}}, {"scale", {2, 1}}, {"shift", {0, 3}}, {"var", {4, 0.25}}}) {
    m.model().graph.initializers.push_back(floats(name, {2}, values));
  }
  std::vector<std::string> outputs = {"y"};
  if (written_for_training) outputs = {"y", "mean_out", "var_out"};
  m.node("bn", "BatchNormalization", {"x", "scale", "shift", "mean", "var"}, outputs,
         {real("momentum", 0.75f), real("epsilon", 0),
          ModelBuilder::integer("training_mode", written_for_training)});
  return m;
}

const std::vector<double> kInput = {1, 2, 3, 6, 5, 2, 7, 6};  // means 4, 4; variances 5, 4

class BatchNorm : public ::testing::TestWithParam<bool> {};

TEST_P(BatchNorm, TrainsWithTheBatchAndRunsWithTheRunningStatistics) {
  const TrainingModels models = three_imports(batch_norm_model(GetParam()));
  EXPECT_THAT(models.parameters, ElementsAre("scale", "shift"));
  EXPECT_THAT(models.statistics, ElementsAre("mean", "var"));
  EXPECT_EQ(models.generator, "");
  const Module module = build_training(models, mean_of_output());
  verify(module);
  EXPECT_EQ(module.states[2].name, "mean");
  EXPECT_EQ(module.states[2].role, StateRole::statistic);
  Trainer t(promote_f64(module));
  const Literal x = Literal::from_doubles(ElementType::f64, {4, 2}, kInput);
  const auto y_of = [&](double x0, double x1) {  // the running statistics, first values
    return std::vector<double>{2 * (x0 - 0.5) / 2, (x1 + 1) / 0.5 + 3};
  };
  const std::vector<double> run = doubles(t.call("run", {{"x", x}}).at("y"));
  EXPECT_THAT(std::vector<double>(run.begin(), run.begin() + 2),
              Pointwise(DoubleNear(1e-9), y_of(1, 2)));
  const Tensors out = t.call("train_step", {{"x", x}, {"target", x}});
  const double y0 = 2 * (1 - 4) / std::sqrt(5.0), y1 = (2 - 4) / 2.0 + 3;
  EXPECT_NEAR(out.at("y").as_double(0), y0, 1e-9);
  EXPECT_NEAR(out.at("y").as_double(1), y1, 1e-9);
  // old · momentum + batch · (1 - momentum), the population's variance
  EXPECT_THAT(doubles(t.state("mean")),
              Pointwise(DoubleNear(1e-7), std::vector<double>{0.375 + 1, -0.75 + 1}));
  EXPECT_THAT(doubles(t.state("var")),
              Pointwise(DoubleNear(1e-7), std::vector<double>{3 + 1.25, 0.1875 + 1}));
  EXPECT_NE(t.state("scale").as_double(0), 2);
}

INSTANTIATE_TEST_SUITE_P(Written, BatchNorm, ::testing::Values(false, true));

TEST(BatchNormErrors, AStatisticOfTwoNodes) {
  ModelBuilder m = batch_norm_model(false);
  m.output("z").node("again", "BatchNormalization", {"y", "scale", "shift", "mean", "var"}, {"z"});
  try {
    three_imports(m);
    ADD_FAILURE() << "was accepted";
  } catch (const CompileError& error) {
    EXPECT_THAT(error.what(), HasSubstr("running statistic of another node"));
  }
}

/// Two normalisations as PyTorch's exporter leaves them before training: all zeros are one
/// initializer, all ones another, the second's mean is a name for the former.
ModelBuilder merged_model() {
  ModelBuilder m;
  m.input("x", {"4", "2"}).output("z");
  m.model().graph.initializers.push_back(floats("zero", {2}, {0, 0}));
  m.model().graph.initializers.push_back(floats("one", {2}, {1, 1}));
  const std::vector<OnnxAttribute> attributes = {real("momentum", 0.75f), real("epsilon", 0)};
  m.node("", "Identity", {"zero"}, {"second.mean"});
  m.node("first", "BatchNormalization", {"x", "one", "zero", "zero", "one"}, {"y"}, attributes);
  m.node("", "BatchNormalization", {"y", "one", "zero", "second.mean", "one"}, {"z"}, attributes);
  return m;
}

TEST(BatchNormMerged, EveryNodeKeepsStatisticsOfItsOwn) {
  ModelBuilder m = merged_model();
  separate_statistics(m.model().graph);
  const TrainingModels models = three_imports(m);
  EXPECT_THAT(models.parameters, ElementsAre("zero", "one"));
  EXPECT_THAT(models.statistics, ElementsAre("first.running_mean", "first.running_var",
                                             "second.mean", "BatchNormalization_2.running_var"));
  Trainer t(promote_f64(build_training(models, mean_of_output())));
  const Literal x = Literal::from_doubles(ElementType::f64, {4, 2}, kInput);
  t.call("train_step", {{"x", x}, {"target", x}});
  const std::map<std::string, std::vector<double>> expected = {
      {"first.running_mean", {1, 1}},
      {"first.running_var", {0.75 + 1.25, 0.75 + 1}},
      {"second.mean", {0, 0}},
      {"BatchNormalization_2.running_var", {1, 1}}};
  for (const auto& [name, values] : expected) {
    EXPECT_THAT(doubles(t.state(name)), Pointwise(DoubleNear(1e-9), values)) << name;
  }
}

TEST(BatchNormMerged, WhatLearnsAsOneIsSaid) {
  ModelBuilder m = merged_model();
  separate_statistics(m.model().graph);
  ImportOptions training;
  training.mode = ImportMode::training;
  EXPECT_THAT(m.import(training).notes,
              ElementsAre(HasSubstr("2 parameters are used by several nodes, \"zero\"")));
  EXPECT_THAT(m.import().notes, ElementsAre());
}

TEST(BatchNormMerged, NothingElseChanges) {
  for (const bool written : {false, true}) {
    EXPECT_TRUE(shared_statistics(batch_norm_model(written).model().graph).empty());
  }
  // Of nodes that share nothing but a statistic, the first keeps it, also beside an unused name.
  ModelBuilder m = batch_norm_model(false);
  m.node("again", "BatchNormalization", {"y", "scale", "shift", "mean", "var"}, {"again.mean"});
  std::vector<std::string> names;
  for (const SharedStatistic& shared : shared_statistics(m.model().graph)) {
    EXPECT_EQ(shared.node, 1U);
    names.push_back(shared.name);
  }
  EXPECT_THAT(names, ElementsAre("again.running_mean", "again.running_var"));
  // What a graph inside of a node uses is used.
  auto inner = std::make_shared<OnnxGraph>();
  inner->outputs.push_back({"mean"});
  OnnxAttribute branch;
  branch.name = "then_branch";
  branch.kind = OnnxAttribute::Kind::graph;
  branch.g = inner;
  ModelBuilder with_branch = batch_norm_model(false);
  with_branch.node("if", "If", {"condition"}, {"result"}, {branch});
  const std::vector<SharedStatistic> shared = shared_statistics(with_branch.model().graph);
  ASSERT_EQ(shared.size(), 1U);
  EXPECT_EQ(shared[0].name, "bn.running_mean");
}

/// y = after · quantised(before · x), the first by a scale of the file or by its own range.
ModelBuilder quantised_model(bool dynamically, bool after = true) {
  ModelBuilder m;
  m.input("x", {"3"}).output("y");
  std::vector<OnnxTensor>& weights = m.model().graph.initializers;
  weights.push_back(floats("before", {3}, {1, 2, 3}));
  weights.push_back(floats("s", {}, {0.5f}));
  if (after) weights.push_back(floats("after", {3}, {1, -1, 2}));
  m.node("first", "Mul", {"x", "before"}, {"a"});
  if (dynamically) {
    m.node("q", "DynamicQuantizeLinear", {"a"}, {"b", "scale", "zero"});
    m.node("d", "DequantizeLinear", {"b", "scale", "zero"}, {"c"});
  } else {
    m.node("q", "QuantizeLinear", {"a", "s"}, {"b"});
    m.node("d", "DequantizeLinear", {"b", "s"}, {"c"});
  }
  if (after) return std::move(m.node("last", "Mul", {"c", "after"}, {"y"}));
  return std::move(m.node("last", "Identity", {"c"}, {"y"}));
}

TEST(Quantised, OnlyWhatComesBehindIsTrained) {
  for (const bool dynamically : {false, true}) {
    const ModelBuilder m = quantised_model(dynamically);
    Trainer t(build_training(three_imports(m), mean_of_output()));
    EXPECT_TRUE(t.has_state("after"));
    EXPECT_FALSE(t.has_state("before"));
    EXPECT_FALSE(t.has_state("s"));
    ImportOptions training;
    training.mode = ImportMode::training;
    EXPECT_THAT(m.import(training).notes, ElementsAre(HasSubstr("1 node quantises, \"q\"")));
    EXPECT_THAT(m.import().notes, ElementsAre());
  }
}

TEST(Quantised, AModelThatEndsSoCannotBeTrained) {
  for (const bool dynamically : {false, true}) {
    try {
      build_training(three_imports(quantised_model(dynamically, false)), mean_of_output());
      ADD_FAILURE() << "was accepted";
    } catch (const CompileError& error) {
      EXPECT_THAT(error.what(), HasSubstr("nothing can be trained"));
    }
  }
}

/// Keras's converter writes every constant as an initializer: bounds, halves, factors.
TEST(Numbers, LearnOnlyWhenTheyAreNamed) {
  ModelBuilder m;
  m.input("x", {"3"}).output("y");
  std::vector<OnnxTensor>& weights = m.model().graph.initializers;
  weights.push_back(floats("w1", {3}, {1, 2, 3}));
  weights.push_back(floats("lo", {}, {0}));
  weights.push_back(floats("hi", {}, {6}));
  weights.push_back(floats("w2", {3}, {3, 2, 1}));
  weights.push_back(floats("factor", {}, {0.5f}));
  m.node("m1", "Mul", {"x", "w1"}, {"p"}).node("clip", "Clip", {"p", "lo", "hi"}, {"h"});
  m.node("m2", "Mul", {"h", "w2"}, {"q"}).node("half", "Mul", {"q", "factor"}, {"y"});
  const auto trained = [&](const std::vector<std::string>& expressions) {
    TrainingSpec spec = mean_of_output();
    spec.trainable.expressions = expressions;
    std::vector<std::string> names;
    for (const StateVariable& state : build_training(three_imports(m), spec).states) {
      if (state.role == StateRole::parameter) names.push_back(state.name);
    }
    return names;
  };
  EXPECT_THAT(trained({}), ElementsAre("w1", "w2"));
  EXPECT_THAT(trained({"last:1"}), ElementsAre("w2"));
  EXPECT_THAT(trained({"last:2"}), ElementsAre("w1", "w2"));
  EXPECT_THAT(trained({"hi", "last:1"}), ElementsAre("hi", "w2"));
}

/// Quantisers put all biases last in a file.
TEST(Updates, FollowTheNetworkWhateverTheFileListsFirst) {
  ModelBuilder m;
  m.input("x", {"3"}).output("y");
  for (const char* name : {"b2", "w2", "b1", "w1"}) {
    m.model().graph.initializers.push_back(floats(name, {3}, {1, 2, 3}));
  }
  m.node("m1", "Mul", {"x", "w1"}, {"p1"}).node("a1", "Add", {"p1", "b1"}, {"h"});
  m.node("m2", "Mul", {"h", "w2"}, {"p2"}).node("a2", "Add", {"p2", "b2"}, {"y"});
  const Module module = build_training(three_imports(m), mean_of_output());
  std::vector<std::string> updated, states;
  for (const Node& node : module.function("train_step").nodes) {
    const bool is_new = updated.empty() || updated.back() != node.loc.node;
    if (node.loc.op_type == "sgd" && node.loc.node != "optimizer" && is_new) {
      updated.push_back(node.loc.node);
    }
  }
  for (size_t i = 0; i < 4; ++i) states.push_back(module.states[i].name);
  EXPECT_THAT(updated, ElementsAre("w1", "b1", "w2", "b2"));
  EXPECT_THAT(states, ElementsAre("b2", "w2", "b1", "w1"));
}

/// y = dropout(x · w), w of ones, so that the outputs show the mask.
ModelBuilder dropout_model(int64_t width) {
  ModelBuilder m;
  m.input("x", {"2", std::to_string(width)}).output("y");
  m.model().graph.initializers.push_back(
      floats("w", {width}, std::vector<float>(static_cast<size_t>(width), 1)));
  m.model().graph.initializers.push_back(floats("ratio", {}, {0.25f}));
  m.node("scale", "Mul", {"x", "w"}, {"s"});
  m.node("drop1", "Dropout", {"s", "ratio"}, {"d"});
  m.node("drop2", "Dropout", {"d", "ratio"}, {"y"});
  return m;
}

Tensors ones(int64_t width) {
  const std::vector<double> values(static_cast<size_t>(2 * width), 1);
  const Literal one = Literal::from_doubles(ElementType::f32, {2, width}, values);
  return {{"x", one}, {"target", one}};
}

TEST(Dropout, DropsTheAskedShareDifferentlyInEveryStep) {
  constexpr int64_t kWidth = 2000;
  const TrainingModels models = three_imports(dropout_model(kWidth));
  EXPECT_EQ(models.generator, "generator");
  TrainingSpec spec = mean_of_output();
  spec.optimizer.rate = 0;
  Trainer t(build_training(models, spec));
  EXPECT_EQ(t.module().states.back().role, StateRole::generator);
  EXPECT_FALSE(t.has_state("ratio"));
  EXPECT_TRUE(t.call("run", ones(kWidth)).at("y").is_splat(1));
  const auto step = [&] { return doubles(t.call("train_step", ones(kWidth)).at("y")); };
  const std::vector<double> first = step(), second = step();
  EXPECT_NE(first, second);
  double kept = 0;
  for (double value : first) {
    if (value == 0) continue;
    EXPECT_NEAR(value, 1 / (0.75 * 0.75), 1e-6);
    kept += 1;
  }
  EXPECT_NEAR(kept / first.size(), 0.75 * 0.75, 0.03);
  t.state("step") = Literal::scalar(ElementType::i32, 0);
  EXPECT_EQ(step(), first);
  t.state("step") = Literal::scalar(ElementType::i32, 0);
  t.state("generator") = Literal::from_doubles(ElementType::u32, {2}, {7, 0});
  EXPECT_NE(step(), first);
}

/// Threefry-2x32 with 20 rounds, first word, from the paper's description.
uint32_t threefry(uint32_t key0, uint32_t key1, uint32_t x, uint32_t y) {
  const uint32_t keys[] = {key0, key1, key0 ^ key1 ^ 0x1BD11BDAu};
  const int rotations[] = {13, 15, 26, 6, 17, 29, 16, 24};
  x += keys[0];
  y += keys[1];
  for (uint32_t round = 0; round < 20; ++round) {
    const int bits = rotations[round % 8];
    x += y;
    y = (y << bits | y >> (32 - bits)) ^ x;
    if (round % 4 != 3) continue;
    const uint32_t group = round / 4 + 1;
    x += keys[group % 3];
    y += keys[(group + 1) % 3] + group;
  }
  return x;
}

TEST(Dropout, TheGeneratorIsThreefry) {
  // Known answers of the authors' library Random123.
  EXPECT_EQ(threefry(0, 0, 0, 0), 0x6b200159u);
  EXPECT_EQ(threefry(0xffffffffu, 0xffffffffu, 0xffffffffu, 0xffffffffu), 0x1cb996fcu);
  EXPECT_EQ(threefry(0x13198a2eu, 0x03707344u, 0x243f6a88u, 0x85a308d3u), 0xc4923a9cu);
  const Module module = three_imports(dropout_model(20)).training;
  const uint32_t key[] = {0x13198a2eu, 0x03707344u}, step = 77;
  for (const auto& [name, mark] :
       std::map<std::string, uint32_t>{{"threefry2x32", 0}, {"threefry2x32_1", 0x9E3779B9u}}) {
    const Value words = evaluate(
        module, module.function(name),
        {Value(Literal::from_doubles(ElementType::u32, {2}, {double(key[0]), double(key[1])})),
         Value(Literal::scalar(ElementType::u32, step))});
    ASSERT_EQ(words.tensor.element_count(), 40);
    for (uint32_t i = 0; i < 40; ++i) {
      EXPECT_EQ(words.tensor.as_int(i), threefry(key[0], key[1] ^ mark, i, step)) << name << i;
    }
  }
}

TEST(Dropout, WhatIsDroppedHasNoGradient) {
  constexpr int64_t kWidth = 50;
  Trainer t(build_training(three_imports(dropout_model(kWidth)), mean_of_output()));
  const Tensors out = t.call("train_step", ones(kWidth));
  for (int64_t i = 0; i < kWidth; ++i) {
    const bool dropped = out.at("y").as_double(i) == 0 && out.at("y").as_double(kWidth + i) == 0;
    EXPECT_EQ(t.state("w").as_double(i) == 1, dropped) << i;
  }
}

TEST(Dropout, EveryBatchOfAnUpdateHasItsOwnMask) {
  TrainingSpec spec = mean_of_output();
  spec.accumulate = 2;
  Trainer t(build_training(three_imports(dropout_model(50)), spec));
  const auto step = [&] { return doubles(t.call("train_step", ones(50)).at("y")); };
  EXPECT_NE(step(), step());
}

/// y = activation(x · w), w of ones; x and the target as given.
double loss_behind(const std::string& activation, LossKind kind, const std::vector<double>& x,
                   const Literal& target) {
  ModelBuilder m;
  m.input("x", {"2", "3"}).output("y");
  m.model().graph.initializers.push_back(floats("w", {3}, {1, 1, 1}));
  m.node("scale", "Mul", {"x", "w"}, {activation.empty() ? "y" : "s"});
  if (!activation.empty()) m.node("end", activation, {"s"}, {"y"});
  TrainingSpec spec;
  spec.loss.kind = kind;
  Trainer t(build_training(three_imports(m), spec));
  const Tensors inputs = {{"x", Literal::from_doubles(ElementType::f32, {2, 3}, x)},
                          {"target", target}};
  const double loss = t.call("train_step", inputs).at("loss").as_double(0);
  EXPECT_TRUE(std::isfinite(t.state("w").as_double(0)));
  return loss;
}

TEST(LossBehindAModel, TakesWhatSoftmaxIsAppliedTo) {
  const Literal labels = Literal::from_doubles(ElementType::i32, {2}, {0, 2});
  const auto loss = [&](const std::string& activation, const std::vector<double>& x) {
    return loss_behind(activation, LossKind::cross_entropy, x, labels);
  };
  const std::vector<double> x = {1, 2, 3, -1, 0, 1};
  const double expected = loss("", x);
  EXPECT_NEAR(expected, (2.407606 + 0.407606) / 2, 1e-5);
  EXPECT_EQ(loss("Softmax", x), expected);
  EXPECT_EQ(loss("LogSoftmax", x), expected);
  // Probabilities would have lost these.
  EXPECT_EQ(loss("Softmax", {-500, 0, 0, 0, 0, 500}), (500 + std::log(2.0f)) / 2);
}

TEST(LossBehindAModel, TakesWhatSigmoidIsAppliedTo) {
  const Literal target = Literal::from_doubles(ElementType::f32, {2, 3}, {1, 0, 1, 0, 1, 1});
  const std::vector<double> x = {-200, 200, 0, 1, 2, 3};
  const double expected = loss_behind("", LossKind::binary_cross_entropy, x, target);
  EXPECT_EQ(loss_behind("Sigmoid", LossKind::binary_cross_entropy, x, target), expected);
  EXPECT_GT(expected, 60);
}

TEST(LossBehindAModel, KlDivergenceTakesLogProbabilities) {
  const Literal target =
      Literal::from_doubles(ElementType::f32, {2, 3}, {0.5, 0.5, 0, 0.25, 0.25, 0.5});
  const std::vector<double> x = {1, 2, 3, -100, 0, 100};
  const double expected = loss_behind("LogSoftmax", LossKind::kl_divergence, x, target);
  EXPECT_EQ(loss_behind("Softmax", LossKind::kl_divergence, x, target), expected);
  EXPECT_GT(expected, 10);
}

OnnxAttribute names(const std::string& name, const std::vector<std::string>& values) {
  OnnxAttribute a;
  a.name = name;
  a.kind = OnnxAttribute::Kind::strings;
  a.strings = values;
  return a;
}

/// y = (x + k) · w, and its gradients by x and w at (x1, w).
ModelBuilder gradient_model(const std::vector<std::string>& xs) {
  ModelBuilder m;
  m.model().opsets["ai.onnx.preview.training"] = 1;
  m.input("x", {"3"}).input("k", {"3"}).input("w", {"3"}).input("x1", {"3"});
  m.output("dx").output("dw");
  m.node("add", "Add", {"x", "k"}, {"s"}).node("mul", "Mul", {"s", "w"}, {"y"});
  m.node("gradient", "Gradient", {"x1", "w"}, {"dx", "dw"},
         {names("xs", xs), ModelBuilder::string("y", "y")});
  m.model().graph.nodes.back().domain = "ai.onnx.preview.training";
  return m;
}

TEST(Gradient, IsTakenAtTheGivenValues) {
  ImportOptions options;
  options.differentiator = add_vjp;
  const ImportedModel model = gradient_model({"x", "w"}).import(options);
  verify(model.module);
  const auto vector = [](const std::vector<double>& values) {
    return Value(Literal::from_doubles(ElementType::f32, {3}, values));
  };
  const Value result =
      evaluate(model.module, model.module.function("main"),
               {vector({9, 9, 9}), vector({1, 2, 3}), vector({4, 5, 6}), vector({7, 8, 9})});
  EXPECT_THAT(doubles(result.elements[0].tensor), ElementsAre(4, 5, 6));    // w
  EXPECT_THAT(doubles(result.elements[1].tensor), ElementsAre(8, 10, 12));  // x1 + k
}

TEST(GradientErrors, SayWhatIsMissing) {
  const auto complaint = [](const ModelBuilder& model, const ImportOptions& options) {
    try {
      model.import(options);
    } catch (const CompileError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_THAT(complaint(gradient_model({"x", "w"}), {}), HasSubstr("differentiator"));
  ImportOptions options;
  options.differentiator = add_vjp;
  EXPECT_THAT(complaint(gradient_model({"x"}), options), HasSubstr("has 2 inputs and names 1"));
  EXPECT_THAT(complaint(gradient_model({"x", "q"}), options), HasSubstr("\"q\" is not defined"));
}

}  // namespace
}  // namespace backcast
