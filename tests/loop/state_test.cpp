// State: its text form, what the verifier refuses, and entry points run one after another.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "ir/graph/error.h"
#include "ir/loop/interpreter.h"
#include "ir/loop/step_access.h"
#include "ir/loop/text.h"
#include "ir/loop/verifier.h"
#include "tests/support/training_program.h"

namespace backcast::loop {
namespace {

Literal f32(std::vector<int64_t> shape, const std::vector<double>& values) {
  return Literal::from_doubles(ElementType::f32, std::move(shape), values);
}

Literal labels(const std::vector<double>& values) {
  return Literal::from_doubles(ElementType::i32, {4}, values);
}

const Literal kRows = f32({4, 2}, {1, 0, 0, 1, 2, -1, 0.5, 0.5});

BufferId find(const Program& program, const std::string& name) {
  for (size_t i = 0; i < program.buffers.size(); ++i) {
    if (program.buffers[i].name == name) return static_cast<BufferId>(i);
  }
  return -1;
}

TEST(State, ReadsBackFromText) {
  Program program = parse_program(kTrainingProgram);
  verify(program);
  program.state_bytes = 96;
  program.state_alignment = 16;
  program.model_hash = 0x0123456789abcdefu;
  program.buffers[0].slice_axis = 1;
  program.buffers[0].slice_start = 3;
  program.buffers[0].order = {0};
  const std::string text = print(program);
  EXPECT_TRUE(equal(program, parse_program(text))) << text;
  EXPECT_EQ(text, print(parse_program(text)));
  Program other = parse_program(text);
  other.entries[1].ranges.begin()->second.ignore = -2;
  EXPECT_FALSE(equal(program, other));
}

TEST(State, ComesInTheOrderOfRoles) {
  Program program = parse_program(kTrainingProgram);
  std::swap(program.buffers[0].role, program.buffers[1].role);
  std::string names;
  for (const BufferId id : program.states()) names += program.buffer(id).name + " ";
  EXPECT_EQ(names, "seen w m g count step rate key ");
  EXPECT_FALSE(writes_state(program, program.entries[1]));
  EXPECT_TRUE(writes_state(program, program.entries[2]));
}

TEST(State, IsTakenAndUpdated) {
  const Program program = parse_program(kTrainingProgram);
  StateValues state = initial_state(program, 0x100000002u);
  const Literal target = labels({1, 0, 1, -1});
  const RunResult step = interpret(program, "train_step", {kRows, target}, state);
  ASSERT_EQ(step.status, RunStatus::ok);
  // Predictions 0.5, -0.5, 1.5, 0 against 1, 0, 1, -1.
  EXPECT_EQ(step.outputs[0].as_double(0), 0.25 * (0.25 + 0.25 + 0.25 + 1));
  EXPECT_EQ(step.outputs[2].as_ints(), (std::vector<int64_t>{2, 1}));
  EXPECT_EQ(state.at("count").as_int(0), 1);
  EXPECT_EQ(state.at("w"), f32({2}, {0.5, -0.25}));
  EXPECT_EQ(state.at("g"), f32({2}, {0.5 * (-0.5 + 2 * 0.5 + 0.5), 0.5 * (-0.5 - 0.5 + 0.5)}));
  const RunResult apply = interpret(program, "apply", {}, state);
  ASSERT_EQ(apply.status, RunStatus::ok);
  EXPECT_EQ(state.at("w"), f32({2}, {0.5 - 0.0625 * 0.5, (-0.25 + 0.0625 * 0.25) * 0.5}));
  EXPECT_EQ(state.at("g"), f32({2}, {0, 0}));
  EXPECT_EQ(state.at("step").as_int(0), 1);
  EXPECT_EQ(state.at("seen").as_double(0), 0.5625);
  const RunResult run = interpret(program, "run", {f32({1, 2}, {1, 0})}, state);
  EXPECT_EQ(run.outputs[0].as_double(0), 0.46875);
}

TEST(State, IsKeptWhenARunIsRefused) {
  const Program program = parse_program(kTrainingProgram);
  StateValues state = initial_state(program);
  const StateValues before = state;
  EXPECT_EQ(interpret(program, "apply", {}, state).status, RunStatus::state);
  const Literal above = labels({0, 10, 0, 0}), below = labels({0, -2, 0, 0});
  EXPECT_EQ(interpret(program, "train_step", {kRows, above}, state).status, RunStatus::index);
  EXPECT_EQ(interpret(program, "evaluate", {kRows, below}, state).status, RunStatus::index);
  for (const double bad : {HUGE_VAL, static_cast<double>(NAN)}) {
    const Literal rows = f32({4, 2}, {1, 0, 0, 1, bad, -1, 0, 0});
    const Literal target = labels({0, 0, 0, 0});
    EXPECT_EQ(interpret(program, "train_step", {rows, target}, state).status, RunStatus::nonfinite);
  }
  EXPECT_EQ(state, before);
  EXPECT_THROW(interpret(program, "apply", {}), CompileError);
}

void expect_refused(const Program& program, const std::string& part) {
  try {
    verify(program);
    ADD_FAILURE() << "accepted; expected: " << part;
  } catch (const InternalError& error) {
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
  }
}

TEST(State, VerifierKnowsRolesAndRules) {
  const Program good = parse_program(kTrainingProgram);
  const auto changed = [&](const std::function<void(Program&)>& change) {
    Program program = good;
    change(program);
    return program;
  };
  const BufferId w = find(good, "w"), key = find(good, "key"), ty = find(good, "ty");
  expect_refused(changed([&](Program& p) { p.buffers[size_t(key)].role = StateRole::rate; }),
                 "state key of role rate");
  expect_refused(changed([&](Program& p) { p.buffers[size_t(w)].value = f32({1}, {1}); }),
                 "initial value of state w");
  expect_refused(changed([&](Program& p) { p.buffers[size_t(w)].order = {1}; }), "no permutation");
  expect_refused(
      changed([&](Program& p) { std::swap(p.entries[2].steps[5], p.entries[2].steps[6]); }),
      "writes state before a check_finite");
  expect_refused(changed([&](Program& p) { p.entries[2].steps[5].buffers = {w}; }), "no scalar");
  expect_refused(changed([&](Program& p) { p.entries[3].required_count = w; }), "counts nothing");
  expect_refused(changed([&](Program& p) { p.entries[2].ranges[ty] = {}; }), "has a range");
  expect_refused(changed([&](Program& p) { p.entries[0].optional_outputs = {ty}; }), "is optional");
  expect_refused(changed([&](Program& p) {
                   p.state_bytes = 200;
                   p.state_alignment = 8;
                   for (const BufferId id : p.states()) p.buffers[size_t(id)].offset = 32;
                 }),
                 "shares bytes");
}

}  // namespace
}  // namespace backcast::loop
