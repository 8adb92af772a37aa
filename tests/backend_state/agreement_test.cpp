// Every form of a training library does what the interpreter does, bit for bit, state included.
#include <gtest/gtest.h>

#include <cmath>

#include "runtime-c/include/bc_types.h"
#include "tests/backend_state/built_library.h"

namespace backcast::state_test {
namespace {

class Agreement : public ::testing::TestWithParam<std::string> {
 protected:
  Agreement() : program_(training_program()), library_(program_, GetParam()), state_(program_) {
    EXPECT_EQ(library_.function<int32_t(void*, size_t, uint64_t)>("init")(state_.data(),
                                                                          state_.bytes(), kSeed),
              BC_OK);
    expected_ = loop::initial_state(program_, kSeed);
  }

  /// Runs an entry point both ways.
  void step(const std::string& entry, const std::vector<Literal>& inputs) {
    const loop::RunResult wanted = loop::interpret(program_, entry, inputs, expected_);
    constexpr int32_t kStatuses[] = {BC_OK, BC_ERROR_INDEX, BC_ERROR_STATE, BC_ERROR_NONFINITE};
    std::vector<Literal> outputs;
    const int32_t status = library_.call(entry, state_.data(), inputs, outputs);
    EXPECT_EQ(status, kStatuses[static_cast<size_t>(wanted.status)]) << entry;
    if (status == BC_OK) {
      ASSERT_EQ(outputs.size(), wanted.outputs.size());
      for (size_t i = 0; i < outputs.size(); ++i) EXPECT_EQ(outputs[i], wanted.outputs[i]) << entry;
    }
    EXPECT_EQ(state_.values(program_), expected_) << entry;
  }

  static Literal rows(uint64_t seed, double factor = 1) {
    std::vector<double> values;
    for (int i = 0; i < 8; ++i) {
      seed = seed * 6364136223846793005u + 1442695040888963407u;
      values.push_back(static_cast<double>(
          static_cast<float>(factor * (static_cast<double>(seed >> 40) / 8388608.0 - 1))));
    }
    return Literal::from_doubles(ElementType::f32, {4, 2}, values);
  }
  static Literal labels(const std::vector<double>& values) {
    return Literal::from_doubles(ElementType::i32, {4}, values);
  }

  static constexpr uint64_t kSeed = 0xfeedface12345678u;
  loop::Program program_;
  BuiltLibrary library_;
  StateBlock state_;
  loop::StateValues expected_;
};

TEST_P(Agreement, OfManySteps) {
  step("apply", {});  // nothing accumulated yet
  for (uint64_t i = 0; i < 12; ++i) {
    step("train_step", {rows(i), labels({1, 0, 9, -1})});
    if (i % 2 == 1) step("apply", {});
    step("evaluate", {rows(i + 100), labels({0, 1, 2, 3})});
  }
  step("run", {Literal::from_doubles(ElementType::f32, {1, 2}, {1, -2})});
}

TEST_P(Agreement, OfRefusals) {
  step("train_step", {rows(1), labels({0, 10, 0, 0})});
  step("train_step", {rows(1), labels({0, 0, 0, -2})});
  step("evaluate", {rows(1), labels({-2147483648.0, 0, 0, 0})});
  step("train_step", {rows(1, HUGE_VAL), labels({0, 0, 0, 0})});
  step("train_step", {rows(1, NAN), labels({0, 0, 0, 0})});
  step("train_step", {rows(1, 1e30), labels({0, 0, 0, 0})});
  step("train_step", {rows(1), labels({0, 0, 0, 0})});
}

TEST_P(Agreement, OutputsMayBeLeftOut) {
  std::vector<Literal> outputs;
  const std::vector<Literal> inputs = {rows(1), labels({0, 1, 2, 3})};
  EXPECT_EQ(library_.call("train_step", state_.data(), inputs, outputs, {"ty", "tkey"}), BC_OK);
  loop::interpret(program_, "train_step", inputs, expected_);
  EXPECT_EQ(state_.values(program_), expected_);
  EXPECT_EQ(library_.call("train_step", state_.data(), inputs, outputs, {"tl"}), BC_ERROR_NULL);
  EXPECT_EQ(state_.values(program_), expected_);
}

TEST_P(Agreement, InDoublePrecision) {
  const loop::Program program = double_program();
  const BuiltLibrary library(program, GetParam());
  const StateBlock state(program);
  ASSERT_EQ(library.function<int32_t(void*, size_t, uint64_t)>("init")(state.data(), state.bytes(),
                                                                       kSeed),
            BC_OK);
  ASSERT_EQ(library.function<int32_t(void*, float)>("set_learning_rate")(state.data(), 0.1f),
            BC_OK);
  loop::StateValues expected = loop::initial_state(program, kSeed);
  expected["rate"] = Literal::scalar(ElementType::f64, 0.1f);
  const Literal x = Literal::from_doubles(ElementType::f64, {4, 2}, {1, 0.1, 2, 0.2, 3, 1, 4, 0});
  for (const std::string entry : {"train_step", "train_step", "apply", "evaluate"}) {
    const std::vector<Literal> inputs =
        entry == "apply" ? std::vector<Literal>{} : std::vector<Literal>{x, labels({1, 2, 3, -1})};
    const loop::RunResult wanted = loop::interpret(program, entry, inputs, expected);
    std::vector<Literal> outputs;
    EXPECT_EQ(library.call(entry, state.data(), inputs, outputs), BC_OK);
    EXPECT_EQ(outputs, wanted.outputs) << entry;
    EXPECT_EQ(state.values(program), expected) << entry;
  }
  double flat[3] = {};
  ASSERT_EQ(library.function<int32_t(const void*, double*)>("get_parameters")(state.data(), flat),
            BC_OK);
  EXPECT_EQ(flat[1], expected["w"].as_double(1));
  EXPECT_EQ(flat[2], expected["seen"].as_double(0));
  EXPECT_EQ(library.function<int32_t(void*, float)>("set_learning_rate")(state.data(), -1.0f),
            BC_ERROR_VALUE);
  const Literal bad = Literal::from_doubles(ElementType::f64, {4, 2}, std::vector<double>(8, NAN));
  std::vector<Literal> outputs;
  EXPECT_EQ(library.call("train_step", state.data(), {bad, labels({0, 0, 0, 0})}, outputs),
            BC_ERROR_NONFINITE);
}

INSTANTIATE_TEST_SUITE_P(Forms, Agreement, ::testing::ValuesIn(forms()));

}  // namespace
}  // namespace backcast::state_test
