// The training module of a small network against the same network trained by hand.
#include "passes/train/training.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/graph/text.h"
#include "ir/graph/verifier.h"
#include "passes/train/saved_values.h"
#include "tests/train/mlp.h"

namespace backcast {
namespace {

using ::testing::DoubleNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;

TrainingSpec sgd(double rate = 0.1) {
  TrainingSpec spec;
  spec.optimizer.rate = rate;
  return spec;
}

Trainer trainer(const TrainingSpec& spec, int64_t batch = 8) {
  Module module = build_training(mlp::models(batch), spec);
  verify(module);
  return Trainer(std::move(module));
}

void expect_near(const Literal& actual, const std::vector<double>& expected, double tolerance) {
  EXPECT_THAT(doubles(actual), Pointwise(DoubleNear(tolerance), expected));
}

TEST(Training, FiftyStepsOfSgdFollowTheHandWrittenOnes) {
  Trainer t = trainer(sgd());
  mlp::Weights w;
  double first = 0, last = 0;
  for (uint64_t step = 0; step < 50; ++step) {
    const Tensors data = mlp::batch(8, step % 5);
    const mlp::Gradients g = mlp::gradients(w, data);
    const Tensors out = t.call("train_step", data);
    ASSERT_NEAR(out.at("loss").as_double(0), g.loss, 1e-7) << "step " << step;
    EXPECT_EQ(out.at("y").shape(), (std::vector<int64_t>{8, 3}));
    mlp::descend(w.w1, g.of.w1, 0.1f);
    mlp::descend(w.b1, g.of.b1, 0.1f);
    mlp::descend(w.w2, g.of.w2, 0.1f);
    mlp::descend(w.b2, g.of.b2, 0.1f);
    (step == 0 ? first : last) = g.loss;
  }
  EXPECT_LT(last, first);
  expect_near(t.state("fc1.weight"), w.w1, 1e-6);
  expect_near(t.state("fc2.bias"), w.b2, 1e-6);
  EXPECT_EQ(t.state("step").as_int(0), 50);
}

TEST(Training, EvaluateGivesTheLossAndChangesNothing) {
  Trainer t = trainer(sgd());
  const Tensors data = mlp::batch(8, 1);
  const Tensors out = t.call("evaluate", data);
  EXPECT_NEAR(out.at("loss").as_double(0), mlp::gradients({}, data).loss, 1e-7);
  expect_near(t.state("fc1.weight"), mlp::Weights().w1, 0);
  EXPECT_EQ(t.state("step").as_int(0), 0);
}

TEST(Training, RunReadsTheTrainedParameters) {
  Trainer t = trainer(sgd());
  const Tensors x = {{"x", mlp::batch(1, 7).at("x")}};
  const std::vector<double> before = doubles(t.call("run", x).at("y"));
  t.call("train_step", mlp::batch(8, 0));
  EXPECT_NE(doubles(t.call("run", x).at("y")), before);
}

TEST(Training, StatesComeInOrder) {
  TrainingSpec spec = sgd();
  spec.optimizer.kind = OptimizerKind::adam;
  const Module module = build_training(mlp::models(8), spec);
  std::vector<std::string> names;
  for (const StateVariable& state : module.states) names.push_back(state.name);
  EXPECT_THAT(names,
              ::testing::ElementsAre("fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias",
                                     "fc1.weight.mean", "fc1.weight.square", "fc1.bias.mean",
                                     "fc1.bias.square", "fc2.weight.mean", "fc2.weight.square",
                                     "fc2.bias.mean", "fc2.bias.square", "step", "learning_rate"));
  EXPECT_EQ(module.entries[2].guard, "loss");
  EXPECT_EQ(module.entries[2].ranges.at("target"), (InputRange{0, 2, std::nullopt}));
}

TEST(Training, AccumulatingFourBatchesOfFourIsABatchOfSixteen) {
  TrainingSpec spec = sgd();
  spec.optimizer.kind = OptimizerKind::adam;
  Trainer whole = trainer(spec, 16);
  spec.accumulate = 4;
  Trainer parts = trainer(spec, 4);
  for (uint64_t update = 0; update < 3; ++update) {
    const Tensors data = mlp::batch(16, update);
    whole.call("train_step", data);
    const std::vector<double> x = doubles(data.at("x")), labels = doubles(data.at("target"));
    for (size_t k = 0; k < 4; ++k) {
      const auto row = [&](const std::vector<double>& v, size_t n) {
        return std::vector<double>(v.begin() + static_cast<int64_t>(k * n),
                                   v.begin() + static_cast<int64_t>((k + 1) * n));
      };
      parts.call("train_step",
                 {{"x", Literal::from_doubles(ElementType::f64, {4, 3}, row(x, 12))},
                  {"target", Literal::from_doubles(ElementType::i32, {4}, row(labels, 4))}});
    }
    EXPECT_EQ(parts.state("accumulated").as_int(0), 4);
    parts.call("apply", {});
    EXPECT_EQ(parts.state("accumulated").as_int(0), 0);
    EXPECT_TRUE(parts.state("fc1.weight.gradient").is_splat(0));
  }
  expect_near(parts.state("fc1.weight"), doubles(whole.state("fc1.weight")), 1e-9);
  expect_near(parts.state("fc2.bias"), doubles(whole.state("fc2.bias")), 1e-9);
  EXPECT_EQ(parts.state("step").as_int(0), 3);
}

TEST(Training, FreezingAllButTheLastLayerTrainsItAlone) {
  TrainingSpec spec = sgd();
  spec.trainable.expressions = {"last:1"};
  Trainer t = trainer(spec);
  EXPECT_FALSE(t.has_state("fc1.weight"));
  mlp::Weights w;
  for (uint64_t step = 0; step < 10; ++step) {
    const Tensors data = mlp::batch(8, step);
    const mlp::Gradients g = mlp::gradients(w, data);
    mlp::descend(w.w2, g.of.w2, 0.1f);
    mlp::descend(w.b2, g.of.b2, 0.1f);
    t.call("train_step", data);
  }
  expect_near(t.state("fc2.weight"), w.w2, 1e-7);
  expect_near(t.state("fc2.bias"), w.b2, 1e-7);
}

TEST(Training, ARangeOfChannelsIsTrainedAlone) {
  TrainingSpec spec = sgd();
  spec.trainable.expressions = {"fc2.weight[0,1:3]"};
  Trainer t = trainer(spec);
  mlp::Weights w;
  for (uint64_t step = 0; step < 5; ++step) {
    const Tensors data = mlp::batch(8, step);
    const mlp::Gradients g = mlp::gradients(w, data);
    for (size_t i = 3; i < 9; ++i) w.w2[i] -= static_cast<double>(0.1f) * g.of.w2[i];
    t.call("train_step", data);
  }
  expect_near(t.state("fc2.weight"), std::vector<double>(w.w2.begin() + 3, w.w2.begin() + 9), 1e-9);
  const StateVariable& state = t.module().states[0];
  EXPECT_EQ(state.slice_axis, 0);
  EXPECT_EQ(state.slice_start, 1);
}

/// Elements of the largest tensor that a contraction gives among the nodes of the backward part.
int64_t largest_backward_product(const Module& module) {
  int64_t largest = 0;
  for (const Node& node : module.function("train_step").nodes) {
    if (node.loc.origin != Origin::adjoint_of || node.op != &ops::dot_general) continue;
    largest = std::max(largest, node.type.tensor().element_count().constant());
  }
  return largest;
}

TEST(Training, OfARangeOnlyWhatItNeedsIsComputed) {
  const auto largest = [](const std::string& trainable) {
    TrainingSpec spec = sgd();
    spec.trainable.expressions = {trainable};
    return largest_backward_product(build_training(mlp::models(1), spec));
  };
  EXPECT_EQ(largest("fc2.weight"), 4 * 3);
  EXPECT_EQ(largest("fc2.weight[0,1:3]"), 2 * 3);
  EXPECT_EQ(largest("fc2.weight[1,2:3]"), 4 * 1);
  // The gradient of fc1 comes through two of its four outputs.
  EXPECT_EQ(largest("fc1.weight[1,1:3]"), 3 * 2);
}

TEST(Training, ARangeOfAnEarlierLayerLearnsAsPartOfTheWhole) {
  TrainingSpec spec = sgd();
  spec.trainable.expressions = {"fc1.weight[1,1:3]", "fc1.bias[0,1:3]"};
  Trainer t = trainer(spec);
  mlp::Weights w;
  for (uint64_t step = 0; step < 5; ++step) {
    const Tensors data = mlp::batch(8, step);
    const mlp::Gradients g = mlp::gradients(w, data);
    for (size_t j = 1; j < 3; ++j) {
      w.b1[j] -= static_cast<double>(0.1f) * g.of.b1[j];
      for (size_t i = 0; i < 3; ++i)
        w.w1[4 * i + j] -= static_cast<double>(0.1f) * g.of.w1[4 * i + j];
    }
    t.call("train_step", data);
  }
  std::vector<double> part;
  for (size_t i = 0; i < 3; ++i) part.insert(part.end(), {w.w1[4 * i + 1], w.w1[4 * i + 2]});
  expect_near(t.state("fc1.weight"), part, 1e-9);
  expect_near(t.state("fc1.bias"), {w.b1[1], w.b1[2]}, 1e-9);
}

std::string complaint(const TrainingSpec& spec) {
  try {
    build_training(mlp::models(8), spec);
  } catch (const CompileError& error) {
    return error.what();
  }
  return "";
}

TEST(TrainingErrors, ALossThatIsNoScalar) {
  TrainingSpec spec;
  spec.loss.kind = LossKind::output;
  EXPECT_THAT(complaint(spec), HasSubstr("must be a scalar"));
}

TEST(TrainingErrors, AnOutputThatDoesNotExist) {
  TrainingSpec spec;
  spec.loss.output = "z";
  EXPECT_THAT(complaint(spec), HasSubstr("no output \"z\""));
}

TEST(TrainingErrors, ClassWeightsOfAnotherNumber) {
  TrainingSpec spec;
  spec.loss.class_weights = {1, 2};
  EXPECT_THAT(complaint(spec), HasSubstr("2 class weights are given for 3 classes"));
}

TEST(TrainingErrors, AnExpressionThatMatchesNothing) {
  TrainingSpec spec;
  spec.trainable.expressions = {"conv.*"};
  EXPECT_THAT(complaint(spec), HasSubstr("matches none"));
  EXPECT_THAT(complaint(spec), HasSubstr("fc1.weight f64[3,4]"));
}

/// x · a → product over windows, which has no gradient → · b
TrainingModels with_a_gap() {
  Module module;
  Builder b(module, "main");
  const Val x(b, b.parameter("x", TensorType{ElementType::f32, {4}}));
  const Val first = mlp::initializer(b, "a.weight", ElementType::f32, {4}, {1, 2, 3, 4});
  b.set_loc({"/a/Mul", "Mul", Origin::imported});
  const Val scaled = x * first;
  b.set_loc({"/window", "Window", Origin::imported});
  ReduceWindowAttrs window;
  window.kind = Reduction::prod;
  window.window = window.strides = window.dilation = {1};
  window.pad_low = window.pad_high = {0};
  const Val product = scaled.emit(ops::reduce_window, {}, window);
  const Val second = mlp::initializer(b, "b.weight", ElementType::f32, {4}, {1, 1, 1, 1});
  b.set_loc({"/b/Mul", "Mul", Origin::imported});
  module.functions["main"] = b.finish(product * second, {"y"});
  return {module, module, module, {"a.weight", "b.weight"}, {}, "", ""};
}

TEST(TrainingErrors, AnOperatorWithoutGradientIsNamedWithTheNearestCut) {
  TrainingSpec spec;
  spec.loss.kind = LossKind::mse;
  try {
    build_training(with_a_gap(), spec);
    ADD_FAILURE() << "was accepted";
  } catch (const CompileError& error) {
    EXPECT_THAT(error.what(), HasSubstr("node \"/window\" (Window): "));
    EXPECT_THAT(error.what(), HasSubstr("--trainable last:1"));
  }
  spec.trainable.expressions = {"last:1"};
  EXPECT_EQ(build_training(with_a_gap(), spec).states[0].name, "b.weight");
}

TEST(TrainingErrors, AScheduleWithoutALength) {
  TrainingSpec spec;
  spec.optimizer.schedule.kind = ScheduleKind::cosine;
  EXPECT_THAT(complaint(spec), HasSubstr("total="));
}

TEST(Training, WhatIsSavedDependsOnWhatIsTrained) {
  const auto saved = [](const std::string& trainable) {
    TrainingSpec spec = sgd();
    spec.trainable.expressions = {trainable};
    std::map<std::string, int64_t> bytes;
    for (const SavedValue& value : saved_values(build_training(mlp::models(8), spec))) {
      bytes[value.layer.node] += value.bytes;
    }
    return bytes;
  };
  const std::map<std::string, int64_t> all = saved("all");
  EXPECT_EQ(all.at("/Relu"), 8 * 4 * 8);  // what fc2 was given
  EXPECT_GT(all.at("loss"), 0);
  const std::map<std::string, int64_t> bias = saved("fc2.bias");
  EXPECT_FALSE(bias.contains("/Relu"));
  EXPECT_FALSE(bias.contains("/fc1/Gemm"));
}

TEST(Training, TheModuleSurvivesItsText) {
  TrainingSpec spec = sgd();
  spec.optimizer.kind = OptimizerKind::adamw;
  spec.optimizer.schedule = {ScheduleKind::cosine, 3, 0, 0.1, 20, 0.1};
  const Module module = build_training(mlp::models(8), spec);
  EXPECT_TRUE(equal(parse_module(print(module, {.max_inline_elements = 1000})), module));
}

}  // namespace
}  // namespace backcast
