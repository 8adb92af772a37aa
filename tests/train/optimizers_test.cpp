// Optimizers and schedules against PyTorch's, five updates each from PyTorch's gradients.
#include "passes/train/optimizers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/train/trainer.h"

namespace backcast {
namespace {

using Json = nlohmann::json;

OptimizerKind kind_of(const std::string& name) {
  for (size_t i = 0; i < std::size(EnumNames<OptimizerKind>::names); ++i) {
    if (EnumNames<OptimizerKind>::names[i] == name) return static_cast<OptimizerKind>(i);
  }
  ADD_FAILURE() << "no optimizer " << name;
  return OptimizerKind::sgd;
}

OptimizerSpec spec_of(const std::string& name, const Json& json) {
  OptimizerSpec spec;
  spec.kind = kind_of(name);
  spec.rate = json.value("lr", 0.1);
  const auto optional = [&](const char* key, std::optional<double>& field) {
    if (json.contains(key)) field = json[key].get<double>();
  };
  optional("momentum", spec.momentum);
  optional("eps", spec.epsilon);
  optional("clip_value", spec.clip_value);
  optional("clip_norm", spec.clip_norm);
  if (json.contains("betas")) {
    spec.beta1 = json["betas"][0];
    spec.beta2 = json["betas"][1];
  }
  spec.alpha = json.value("alpha", spec.alpha);
  spec.centered = json.value("centered", false);
  spec.rate_decay = json.value("lr_decay", 0.0);
  spec.initial_accumulator = json.value("initial_accumulator_value", 0.0);
  if (spec.kind == OptimizerKind::adamw) {
    optional("weight_decay", spec.decoupled_decay);
  } else {
    spec.weight_decay = json.value("weight_decay", 0.0);
  }
  return spec;
}

std::vector<double> flat(const Json& json) {
  if (!json.is_array()) return {json.get<double>()};
  std::vector<double> values;
  for (const Json& item : json) {
    for (double value : flat(item)) values.push_back(value);
  }
  return values;
}

/// A module whose entry `update` takes gradients of vectors; the states are as in training.
Module updates_of(const OptimizerSpec& spec, const std::vector<std::string>& names,
                  const std::vector<std::vector<double>>& start, ElementType element) {
  Module module;
  Builder b(module, "update");
  std::vector<Val> parameters, gradients;
  std::vector<std::vector<Val>> slots(names.size());
  for (size_t i = 0; i < names.size(); ++i) {
    const int64_t size = static_cast<int64_t>(start[i].size());
    const TensorType type{element, {size}};
    const auto state = [&](const std::string& name, const std::vector<double>& values) {
      module.states.push_back({name,
                               StateRole::slot,
                               Literal::from_doubles(element, {size}, values),
                               {name, "", Origin::made}});
      return Val(b, b.parameter(name, type));
    };
    parameters.push_back(state(names[i], start[i]));
    for (const Slot& slot : slots_of(spec)) {
      slots[i].push_back(
          state(names[i] + "." + slot.name, std::vector<double>(start[i].size(), slot.initial)));
    }
    gradients.emplace_back(b, b.parameter("gradient of " + names[i], type));
  }
  module.states.push_back(
      {"step", StateRole::step, Literal::scalar(ElementType::i32, 0), {"step", "", Origin::made}});
  const Val step(b, b.parameter("step", TensorType{ElementType::i32, {}}));
  const Val rate(b, b.parameter("rate", TensorType{element, {}}));
  b.set_loc({"update", "", Origin::made});
  const Optimizer optimizer(spec, rate, step);
  gradients = optimizer.clip(gradients);
  std::vector<ValueId> results;
  std::vector<std::string> result_names;
  for (size_t i = 0; i < names.size(); ++i) {
    const Optimizer::Update update = optimizer.update(parameters[i], gradients[i], slots[i]);
    results.push_back(update.parameter);
    result_names.push_back(names[i]);
    for (size_t k = 0; k < slots[i].size(); ++k) {
      results.push_back(update.slots[k]);
      result_names.push_back(names[i] + "." + slots_of(spec)[k].name);
    }
  }
  results.push_back(step + 1.0);
  result_names.push_back("step");
  module.functions["update"] = b.finish(b.emit(ops::tuple, results), result_names);
  module.entries.push_back({"update", "update", "", {}, {}});
  return module;
}

void follow(const Json& json, const Json& start, ElementType element, double tolerance) {
  const OptimizerSpec spec = spec_of(json["optimizer"], json["settings"]);
  const std::vector<std::string> names = {"x", "y"};
  Trainer t(updates_of(spec, names, {flat(start["x"]), flat(start["y"])}, element));
  for (const Json& step : json["steps"]) {
    Tensors inputs = {{"rate", Literal::scalar(element, spec.rate)}};
    for (const std::string& name : names) {
      const std::vector<double> gradient = flat(step["gradient"][name]);
      inputs["gradient of " + name] =
          Literal::from_doubles(element, {static_cast<int64_t>(gradient.size())}, gradient);
    }
    t.call("update", inputs);
    for (const std::string& name : names) {
      EXPECT_THAT(doubles(t.state(name)),
                  ::testing::Pointwise(::testing::DoubleNear(tolerance), flat(step[name])));
    }
  }
}

Json references() {
  std::ifstream file(std::string(TRAINING_DATA) + "/optimizers.json");
  return Json::parse(file);
}

TEST(Optimizers, AgreeWithPyTorchInDouble) {
  const Json all = references();
  ASSERT_GT(all["cases"].size(), 15u);
  for (const Json& json : all["cases"]) {
    SCOPED_TRACE(json["optimizer"].get<std::string>() + json["settings"].dump());
    follow(json, all["start"], ElementType::f64, 1e-12);
  }
}

TEST(Optimizers, AgreeWithPyTorchInSingle) {
  const Json all = references();
  for (const Json& json : all["cases"]) {
    SCOPED_TRACE(json["optimizer"].get<std::string>() + json["settings"].dump());
    follow(json, all["start"], ElementType::f32, 5e-6);
  }
}

/// SGD on a constant gradient of 1: each update takes the scheduled rate off.
TEST(Schedules, AgreeWithPyTorch) {
  const Json all = references();
  ASSERT_EQ(all["schedules"].size(), 4u);
  for (const Json& json : all["schedules"]) {
    SCOPED_TRACE(json.dump());
    OptimizerSpec spec;
    const std::string name = json["schedule"];
    spec.schedule.kind = name == "step"     ? ScheduleKind::step
                         : name == "cosine" ? ScheduleKind::cosine
                                            : ScheduleKind::constant;
    spec.schedule.warmup = json.value("warmup", 0);
    spec.schedule.every = json.value("every", 0);
    spec.schedule.factor = json.value("factor", 0.1);
    spec.schedule.total = json.value("total", 0);
    spec.schedule.least = json.value("least", 0.0);
    check_optimizer(spec);
    Trainer t(updates_of(spec, {"x"}, {{0}}, ElementType::f64));
    double expected = 0;
    for (double rate : flat(json["rates"])) {
      t.call("update", {{"rate", Literal::scalar(ElementType::f64, 0.125)},
                        {"gradient of x", Literal::from_doubles(ElementType::f64, {1}, {1})}});
      expected -= rate;
      EXPECT_NEAR(t.state("x").as_double(0), expected, 1e-12);
    }
  }
}

}  // namespace
}  // namespace backcast
