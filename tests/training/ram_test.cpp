// Training in less memory: what is computed again comes to the same bits.
#include <gtest/gtest.h>

#include "tests/training/batches.h"
#include "tests/training/student.h"

namespace backcast::training {
namespace {

constexpr int64_t kSteps = 2;

/// ResNet8, whose activations outweigh its parameters.
Network one_image() {
  Network result = network("ic");
  result.input[0] = 1;
  return result;
}

int64_t total(const TrainingLibrary& library) {
  return library.model.result.program.arena_bytes + library.model.result.program.state_bytes;
}

/// Parameters after a few steps, losses on the way.
std::pair<Literal, std::vector<double>> trained(const TrainingLibrary& library,
                                                const Network& of = one_image()) {
  Student student(library);
  std::vector<double> losses;
  for (int64_t step = 0; step < kSteps; ++step) {
    losses.push_back(student.step(batch(of, step, ElementType::f32, training_digits())));
  }
  return {student.parameters(), losses};
}

TEST(Ram, EveryBudgetGivesTheSameBits) {
  const std::string model = reference_model("ic");
  const TrainingRequest request = request_for(one_image(), "sgd", false);
  const TrainingLibrary whole(model, request, "jit", {.ram = int64_t{1} << 40});
  EXPECT_EQ(whole.model.result.notes.recomputation, "recomputes nothing");
  const auto expected = trained(whole);
  const int64_t arena = whole.model.result.program.arena_bytes, state = total(whole) - arena;
  int64_t met = 0;
  for (const int64_t percent : {95, 85, 75, 30}) {
    const int64_t ram = state + arena * percent / 100;
    std::optional<TrainingLibrary> fitted;
    try {
      fitted.emplace(model, request, "jit", PassOptions{.ram = ram});
    } catch (const CompileError& error) {
      EXPECT_NE(std::string(error.what()).find("the least that recomputation reaches"),
                std::string::npos);
      continue;
    }
    ++met;
    EXPECT_LE(total(*fitted), ram);
    EXPECT_NE(fitted->model.result.notes.recomputation.find("recomputes"), std::string::npos);
    const auto found = trained(*fitted);
    EXPECT_EQ(found.first, expected.first) << percent << " %";
    EXPECT_EQ(found.second, expected.second) << percent << " %";
  }
  EXPECT_EQ(met, 3) << "budgets that can be met";
}

/// The least that the message for a budget out of reach names; 0 where it is met.
int64_t least_for(int64_t ram, const std::string& model, const TrainingRequest& request,
                  const std::string& target = "native") {
  try {
    TrainingLibrary(model, request, "jit", {.ram = ram}, target);
  } catch (const CompileError& error) {
    const std::string text = error.what(), before = "recomputation reaches is ";
    const size_t at = text.find(before);
    EXPECT_NE(at, text.npos) << text;
    if (at != text.npos) return std::stoll(text.substr(at + before.size()));
  }
  return 0;
}

TEST(Ram, NamesALeastThatIsEnough) {
  const std::string model = reference_model("ic");
  const TrainingRequest request = request_for(one_image(), "sgd", false);
  const int64_t least = least_for(1, model, request);
  ASSERT_GT(least, 0);
  EXPECT_LE(total(TrainingLibrary(model, request, "jit", {.ram = least})), least);
  EXPECT_LT(least, total(TrainingLibrary(model, request, "jit")));
}

TEST(Ram, NamesTheSameLeastForBudgetsThatStateAloneExceeds) {
  const std::string model = reference_model("digits_cnn");
  const TrainingRequest request = request_for(network("digits_cnn"), "sgd", false);
  const TrainingLibrary usual(model, request, "jit", {}, "cortex-m4");
  const int64_t state = usual.model.result.program.state_bytes;
  const int64_t least = least_for(1, model, request, "cortex-m4");
  ASSERT_GT(least, state);
  EXPECT_LE(least, total(usual));
  EXPECT_EQ(least_for(state + 4096, model, request, "cortex-m4"), least);
  EXPECT_EQ(least_for(least, model, request, "cortex-m4"), 0);
}

TEST(Ram, WhatFitsUnaskedFitsAsked) {
  for (const char* name : {"digits_cnn", "digits_mlp", "ad"}) {
    const std::string model = reference_model(name);
    const TrainingRequest request = request_for(network(name), "adam", false);
    const TrainingLibrary usual(model, request, "jit", {}, "cortex-m4");
    EXPECT_EQ(least_for(total(usual), model, request, "cortex-m4"), 0) << name;
  }
}

TEST(Ram, WithoutABudgetTheBitsAreTheSame) {
  const std::string model = reference_model("ic");
  const TrainingRequest request = request_for(one_image(), "sgd", false);
  const TrainingLibrary whole(model, request, "jit", {.ram = int64_t{1} << 40});
  const TrainingLibrary usual(model, request, "jit");
  EXPECT_LE(total(usual), total(whole));
  EXPECT_EQ(trained(usual).first, trained(whole).first);
}

/// What is not trained keeps nothing for a backward pass, so its layers run in bands.
TEST(Ram, FrozenLayersRunInBandsOnAMicrocontroller) {
  const std::string model = reference_model("digits_cnn");
  const Network digits = network("digits_cnn");
  TrainingRequest request = request_for(digits, "sgd", false);
  request.spec.trainable.expressions = {"last:1"};
  const TrainingLibrary whole(model, request, "jit", {.bands = false}, "cortex-m4");
  const TrainingLibrary bands(model, request, "jit", {}, "cortex-m4");
  EXPECT_EQ(whole.model.result.notes.bands, "");
  EXPECT_NE(bands.model.result.notes.bands.find("in bands"), std::string::npos);
  EXPECT_LT(total(bands) * 3, total(whole) * 2);
  const auto expected = trained(whole, digits);
  EXPECT_EQ(trained(bands, digits), expected);
  const TrainingLibrary fitted(model, request, "jit", {.ram = total(bands)}, "cortex-m4");
  EXPECT_LE(total(fitted), total(bands));
  EXPECT_EQ(trained(fitted, digits), expected);
}

}  // namespace
}  // namespace backcast::training
