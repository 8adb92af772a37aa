// Losses and their gradients against PyTorch's values in double, and where formulas break easily.
#include "passes/train/losses.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "ir/graph/error.h"
#include "ir/graph/text.h"
#include "ir/graph/verifier.h"
#include "passes/graph/differentiate.h"
#include "passes/train/append_loss.h"
#include "tests/train/trainer.h"

namespace backcast {
namespace {

using Json = nlohmann::json;
using ::testing::HasSubstr;

/// Shape and elements of nested lists.
void collect(const Json& json, size_t depth, std::vector<int64_t>& shape,
             std::vector<double>& out) {
  if (!json.is_array()) {
    out.push_back(json.get<double>());
    return;
  }
  if (shape.size() == depth) shape.push_back(static_cast<int64_t>(json.size()));
  for (const Json& item : json) collect(item, depth + 1, shape, out);
}

Literal literal(const Json& json, ElementType element) {
  std::vector<int64_t> shape;
  std::vector<double> values;
  collect(json, 0, shape, values);
  return Literal::from_doubles(element, shape, values);
}

struct Evaluated {
  double loss;
  std::vector<double> gradient;
};

Evaluated evaluate_loss(const LossSpec& spec, const Literal& input, const Literal& target,
                        bool log_softmax_first = false) {
  Module module;
  Builder b(module, "main");
  const Val x(b, b.parameter("x", input.type()));
  const Val t(b, b.parameter("t", target.type()));
  b.set_loc({"loss", "", Origin::made});
  Val prediction = x;
  if (log_softmax_first) {
    const Shape shape = x.shape();
    prediction = x - broadcast_along(log(sum(exp(x), {1})), shape, {1});
  }
  EXPECT_EQ(target_of(spec, prediction.type())->type, target.type());
  const Val loss = loss_of(spec, prediction, t);
  module.functions["main"] = b.finish(loss);
  DifferentiateOptions options;
  options.wrt = {"x"};
  module = differentiate(module, "main", options);
  const Value result = evaluate(module, module.function("main_adjoint"), {input, target});
  return {result.elements[0].tensor.as_double(0), doubles(result.elements[1].elements[0].tensor)};
}

LossSpec spec_of(const Json& json) {
  LossSpec spec;
  const std::string name = json["loss_function"];
  spec.kind = name == "cross_entropy"     ? LossKind::cross_entropy
              : name == "bce_with_logits" ? LossKind::binary_cross_entropy
              : name == "mse"             ? LossKind::mse
              : name == "l1"              ? LossKind::l1
              : name == "huber"           ? LossKind::huber
                                          : LossKind::kl_divergence;
  const std::string reduction = json.value("reduction", "mean");
  spec.reduction = reduction == "sum"         ? LossReduction::sum
                   : reduction == "batchmean" ? LossReduction::batchmean
                                              : LossReduction::mean;
  if (json.contains("weight")) spec.class_weights = json["weight"].get<std::vector<double>>();
  if (json.contains("ignore_index")) spec.ignore_index = json["ignore_index"].get<int64_t>();
  spec.label_smoothing = json.value("label_smoothing", 0.0);
  spec.delta = json.value("delta", 1.0);
  spec.probabilities = json.value("case", "").starts_with("probabilities");
  return spec;
}

TEST(Losses, AgreeWithPyTorch) {
  std::ifstream file(std::string(TRAINING_DATA) + "/losses.json");
  const Json cases = Json::parse(file);
  ASSERT_GT(cases.size(), 20u);
  for (const Json& json : cases) {
    SCOPED_TRACE(json["loss_function"].get<std::string>() + " " + json.value("case", "") + " " +
                 json.value("reduction", ""));
    const LossSpec spec = spec_of(json);
    const bool labels = spec.kind == LossKind::cross_entropy && !spec.probabilities;
    const Literal input = literal(json["input"], ElementType::f64);
    const Literal target = literal(json["target"], labels ? ElementType::i32 : ElementType::f64);
    const bool kl = json["loss_function"] == "kl_of_log_softmax";
    const Evaluated result = evaluate_loss(spec, input, target, kl);
    EXPECT_NEAR(result.loss, json["loss"].get<double>(), 1e-12);
    const std::vector<double> expected = doubles(literal(json["gradient"], ElementType::f64));
    ASSERT_EQ(result.gradient.size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_NEAR(result.gradient[i], expected[i], 1e-12) << "element " << i;
    }
  }
}

Literal f32(const std::vector<int64_t>& shape, const std::vector<double>& values) {
  return Literal::from_doubles(ElementType::f32, shape, values);
}

TEST(Losses, CrossEntropyOfHugeLogitsStaysFinite) {
  const Literal label = Literal::from_doubles(ElementType::i32, {1}, {1});
  const Evaluated result = evaluate_loss({}, f32({1, 3}, {1000, -1000, 0}), label);
  EXPECT_EQ(result.loss, 2000);
  EXPECT_EQ(result.gradient, (std::vector<double>{1, -1, 0}));
}

TEST(Losses, AnImpossibleClassDoesNotSpoilTheOthers) {
  const Literal label = Literal::from_doubles(ElementType::i32, {1}, {0});
  const Evaluated result = evaluate_loss({}, f32({1, 2}, {0, -HUGE_VAL}), label);
  EXPECT_EQ(result.loss, 0);
  EXPECT_EQ(result.gradient, (std::vector<double>{0, 0}));
}

TEST(Losses, BinaryCrossEntropyHasAGradientAtZeroAndFarOut) {
  LossSpec spec;
  spec.kind = LossKind::binary_cross_entropy;
  spec.reduction = LossReduction::sum;
  const Evaluated result = evaluate_loss(spec, f32({3}, {0, 500, -500}), f32({3}, {1, 0, 1}));
  EXPECT_NEAR(result.loss, 1000 + std::log(2), 1e-4);
  EXPECT_EQ(result.gradient, (std::vector<double>{-0.5, 1, -1}));
}

TEST(Losses, AVectorOfLogitsIsOneExample) {
  const Literal label = Literal::from_doubles(ElementType::i32, {}, {0});
  EXPECT_NEAR(evaluate_loss({}, f32({2}, {0, 0}), label).loss, std::log(2), 1e-6);
}

std::string complaint(const LossSpec& spec, const TensorType& type) {
  try {
    target_of(spec, type);
  } catch (const CompileError& error) {
    return error.what();
  }
  return "";
}

TEST(LossErrors, SayWhatDoesNotFit) {
  LossSpec spec;
  EXPECT_THAT(complaint(spec, {ElementType::f32, {}}), HasSubstr("scalar"));
  EXPECT_THAT(complaint(spec, {ElementType::i64, {2, 3}}), HasSubstr("floating-point"));
  EXPECT_THAT(complaint(spec, {ElementType::f32, {2, Dim::symbol("C")}}), HasSubstr("--dim"));
  spec.label_smoothing = 2;
  EXPECT_THAT(complaint(spec, {ElementType::f32, {2, 3}}), HasSubstr("between 0 and 1"));
  spec = {};
  spec.probabilities = true;
  spec.ignore_index = 0;
  EXPECT_THAT(complaint(spec, {ElementType::f32, {2, 3}}), HasSubstr("no label to ignore"));
  spec = {};
  spec.kind = LossKind::output;
  EXPECT_THAT(complaint(spec, {ElementType::f32, {2, 3}}), HasSubstr("must be a scalar"));
  EXPECT_EQ(complaint(spec, {ElementType::f32, {1, 1}}), "");
}

/// Nobody could tell how large a target has to be.
TEST(LossErrors, AnOutputAsLargeAsTheDataHasItHasNoTarget) {
  const Module module = parse_module(R"(symbol K in 0..4
func @main(%x: f32[4], %n: i64[]) -> (f32[K], f32[4]) {
  %p = prefix %x, %n {axis=0, extent=K}
  %y = exp %x
  %t = tuple %p, %y
  return %t
})");
  Function function = module.function("main");
  function.result_names = {"chosen", "all"};
  LossSpec spec;
  spec.kind = LossKind::mse;
  try {
    append_loss(module, function, 2, spec, {});
    FAIL() << "no complaint";
  } catch (const CompileError& error) {
    EXPECT_THAT(error.what(), HasSubstr("as large as the output \"chosen\", f32[K]"));
  }
  spec.output = "all";
  EXPECT_EQ(append_loss(module, function, 2, spec, {}).target, "target");
}

/// A symbol has its value from a node that no other takes anything from.
TEST(Losses, WhatMeasuresAnExtentIsKept) {
  Module module = parse_module(R"(symbol K in 0..4
func @main(%x: f32[4], %n: i64[]) -> f32[] {
  %p = prefix %x, %n {axis=0, extent=K}
  %s = slice %x {start=[0], limit=[K], stride=[1]}
  %y = reduce %s {kind=sum, axes=[0]}
  return %y
})");
  Function function = module.function("main");
  function.result_names = {"y"};
  LossSpec spec;
  spec.kind = LossKind::mse;
  module.functions["loss"] = append_loss(module, function, 1, spec, {}).function;
  verify(module);
  const auto& nodes = module.function("loss").nodes;
  EXPECT_TRUE(std::any_of(nodes.begin(), nodes.end(),
                          [](const Node& node) { return measured_symbol(node) == "K"; }));
}

}  // namespace
}  // namespace backcast
