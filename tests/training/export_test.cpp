// A checkpoint written back into the ONNX file: the file then computes what the library computes.
#include "driver/export.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "backend/llvm/jit.h"
#include "ir/graph/error.h"
#include "tests/backend_c/compiled.h"
#include "tests/training/learner.h"
#include "tests/training/student.h"

namespace backcast::training {
namespace {

constexpr int64_t kImages = 20;

Literal image(int64_t i) {
  return Literal::from_doubles(ElementType::f32, {1, 1, 8, 8},
                               test_digits().images[static_cast<size_t>(i)]);
}

/// First outputs of an ONNX file for inputs one by one.
std::vector<Literal> run_file(const std::string& path, const std::vector<Literal>& inputs) {
  CompileRequest request;
  request.model = path;
  const CompiledModel model = compile_model(request);
  const CompiledProgram program(model.result.program, model.target);
  std::vector<Literal> outputs;
  for (const Literal& input : inputs) outputs.push_back(program.run("run", {input}).at(0));
  return outputs;
}

/// The same of a file alone in a folder.
std::vector<Literal> run_alone(const std::string& model_bytes, const std::vector<Literal>& inputs) {
  const c_test::Folder folder;
  folder.write("exported.onnx", model_bytes);
  return run_file(folder.path() + "/exported.onnx", inputs);
}

/// Outputs for the test images.
std::vector<Literal> outputs_of(const std::string& model_bytes) {
  std::vector<Literal> images;
  for (int64_t i = 0; i < kImages; ++i) images.push_back(image(i));
  return run_alone(model_bytes, images);
}

void expect_equal(const std::vector<Literal>& actual, const std::vector<Literal>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    EXPECT_LT(relative_distance(actual[i], expected[i]), 1e-6) << "image " << i;
  }
}

/// Refused with these words.
void expect_refused(const std::string& model, const std::string& checkpoint,
                    const std::string& words) {
  try {
    export_model(model, checkpoint);
    ADD_FAILURE() << "accepted; expected: " << words;
  } catch (const CompileError& error) {
    EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
  }
}

TrainingRequest adam(const std::vector<std::string>& trainable = {}) {
  TrainingRequest request = request_for(network("digits_cnn"), "adam", false);
  request.spec.trainable.expressions = trainable;
  return request;
}

std::vector<Literal> digits_batch(int64_t step, ElementType element = ElementType::f32) {
  return batch(network("digits_cnn"), step, element, training_digits());
}

TEST(Export, WhatADeviceLearntRunsFromTheFile) {
  CompileRequest request;
  request.model = reference_model("digits_cnn");
  request.training = adam();
  const CompiledModel model = compile_model(request);
  const std::unique_ptr<Learner> learner = make_device_learner(model, Emit::lib);
  std::vector<Call> calls{{"init", {Literal::scalar(ElementType::u64, 1)}}};
  for (int64_t step = 0; step < 10; ++step) calls.push_back({"train_step", digits_batch(step)});
  calls.push_back({"save", {}});
  for (int64_t i = 0; i < kImages; ++i) calls.push_back({"run", {image(i)}});
  const std::vector<std::vector<Literal>> replies = learner->run(calls);
  const std::vector<Literal>& saved = replies[11];
  const std::string checkpoint(saved[0].data<char>(), static_cast<size_t>(saved[1].as_int(0)));
  std::vector<Literal> expected;
  for (int64_t i = 0; i < kImages; ++i) {
    expected.push_back(replies[static_cast<size_t>(12 + i)].at(0));
  }
  const std::vector<Literal> actual = outputs_of(export_model(request.model, checkpoint));
  expect_equal(actual, expected);
  const std::vector<Literal> before = outputs_of(read_file(request.model));
  EXPECT_GT(relative_distance(before[0], actual[0]), 1e-2) << "training changed nothing";
}

TEST(Export, WeightsThatNodesHoldBecomeInitializers) {
  const std::string model = BACKCAST_TEST_MODELS "/node_weights/model.onnx";
  TrainingRequest request;
  request.spec.loss.kind = LossKind::cross_entropy;
  const TrainingLibrary library(model, request, "jit");
  Student student(library);
  std::vector<double> pixels;
  for (int i = 0; i < 2 * 9 * 7; ++i) pixels.push_back(i % 11 / 5.0 - 1);
  const Literal image = Literal::from_doubles(ElementType::f32, {1, 2, 9, 7}, pixels);
  const Literal before = student.run({image}).at(0);
  const Literal label = Literal::from_doubles(ElementType::i32, {1}, {3});
  for (int step = 0; step < 20; ++step) student.step({image, label});
  const std::vector<Literal> learnt = student.run({image});
  EXPECT_GT(relative_distance(before, learnt[0]), 1e-2) << "training changed nothing";
  expect_equal(run_alone(export_model(model, student.save()), {image}), learnt);
}

/// One test per way in which a state differs from the file: a part of a tensor, double precision.
TEST(Export, PartsGoIntoTheirPlace) {
  const std::string model = reference_model("digits_cnn");
  const TrainingLibrary library(model, adam({"conv2.weight[0,3:9]", "fc.weight[1,2:7]"}), "jit");
  Student student(library);
  for (int64_t step = 0; step < 10; ++step) student.step(digits_batch(step));
  std::vector<Literal> expected;
  for (int64_t i = 0; i < kImages; ++i) expected.push_back(student.run({image(i)}).at(0));
  expect_equal(outputs_of(export_model(model, student.save())), expected);
}

TEST(Export, DoublesAreRounded) {
  const std::string model = reference_model("digits_cnn");
  TrainingRequest request = adam();
  request.promote = true;
  const TrainingLibrary library(model, request, "jit");
  Student student(library);
  for (int64_t step = 0; step < 10; ++step) student.step(digits_batch(step, ElementType::f64));
  std::vector<Literal> expected;
  for (int64_t i = 0; i < kImages; ++i) {
    const Literal pixels = Literal::from_doubles(ElementType::f64, {1, 1, 8, 8},
                                                 test_digits().images[static_cast<size_t>(i)]);
    expected.push_back(student.run({pixels}).at(0));
  }
  expect_equal(outputs_of(export_model(model, student.save())), expected);
}

TEST(Export, RunningStatisticsAndExternalDataGoIntoTheFile) {
  const std::string model = reference_model("kws");
  const Network& kws = network("kws");
  const TrainingLibrary library(model, request_for(kws, "sgd", false), "jit");
  Student student(library);
  for (int64_t step = 0; step < 3; ++step) {
    student.step(batch(kws, step, ElementType::f32, training_digits()));
  }
  const std::vector<Literal> inputs = batch(kws, 4, ElementType::f32, training_digits());
  const size_t elements = 490;
  const Literal one(ElementType::f32, {1, 1, 49, 10}, inputs[0].bytes().first(elements * 4),
                    std::make_shared<Literal>(inputs[0]));
  const Literal expected = student.run({one}).at(0);
  const Literal actual = run_alone(export_model(model, student.save()), {one})[0];
  EXPECT_LT(relative_distance(actual, expected), 1e-5);
}

/// Behind weights that learnt the file computes in floating point, as the library does.
TEST(Export, QuantisedWeightsThatLearntAreFloats) {
  const std::string file = BACKCAST_EXAMPLES "/finetune/dscnn_int8.onnx";
  for (const char* trainable : {"last:1", "last:3"}) {
    TrainingRequest request;
    request.batch = 1;
    request.spec.trainable.expressions = {trainable};
    const TrainingLibrary library(file, request, "jit");
    Student student(library);
    std::vector<double> pixels;
    for (int i = 0; i < 490; ++i) pixels.push_back(i * 37 % 101 / 50.0 - 1);
    const Literal word = Literal::from_doubles(ElementType::f32, {1, 1, 49, 10}, pixels);
    const Literal label = Literal::from_doubles(ElementType::i32, {1}, {3});
    // The last layer alone computes what the file does, but for half a step of its result.
    const Literal before = student.run({word}).at(0);
    const Literal rounded = run_file(file, {word})[0];
    if (std::string_view(trainable) == "last:1") {
      const double half_a_step = 0.5000001 * 0.05654192;  // logits_scale
      for (int64_t i = 0; i < rounded.element_count(); ++i) {
        EXPECT_NEAR(before.as_double(i), rounded.as_double(i), half_a_step) << i;
      }
    }
    for (int step = 0; step < 10; ++step) student.step({word, label});
    const std::vector<Literal> learnt = student.run({word});
    EXPECT_GT(relative_distance(before, learnt[0]), 1e-2) << "training changed nothing";
    expect_equal(run_alone(export_model(file, student.save()), {word}), learnt);
  }
}

/// Of four bits with a scale for each block; other layers of the file are packed in other ways.
TEST(Export, WeightsOfFourBitsThatLearntAreFloats) {
  const std::string file = BACKCAST_TEST_MODELS "/packed_weights/model.onnx";
  TrainingRequest request;
  request.spec.loss.kind = LossKind::mse;
  request.spec.optimizer.rate = 0.1;
  const auto trained_names = [&] {
    std::vector<std::string> names;
    for (const StateVariable& state : import_training(file, {}, request).module.states) {
      if (state.role == StateRole::parameter) names.push_back(state.name);
    }
    return names;
  };
  // Neither scales nor zero points, which one layer has in floating point.
  EXPECT_EQ(trained_names(),
            std::vector<std::string>({"first.scale", "up.bias", "second.scale", "third.scale"}));
  request.spec.trainable.expressions = {"onnx.weight"};
  EXPECT_EQ(trained_names(), std::vector<std::string>({"onnx.weight"}));
  const TrainingLibrary library(file, request, "jit");
  Student student(library);
  const Literal words = Literal::from_doubles(ElementType::i32, {1, 3}, {3, 11, 7});
  const Literal before = student.run({words}).at(0);
  EXPECT_LT(relative_distance(run_file(file, {words})[0], before), 1e-6);
  const std::vector<double> ones(static_cast<size_t>(before.element_count()), 1);
  const Literal target = Literal::from_doubles(ElementType::f32, before.shape(), ones);
  for (int step = 0; step < 10; ++step) student.step({words, target});
  const std::vector<Literal> learnt = student.run({words});
  EXPECT_GT(relative_distance(before, learnt[0]), 1e-2) << "training changed nothing";
  expect_equal(run_alone(export_model(file, student.save()), {words}), learnt);
}

/// Steps too small for halves add up; the file has them rounded again.
TEST(Export, HalvesLearnAsFloats) {
  const std::string model = reference_model("digits_cnn_f16");
  TrainingRequest request = request_for(network("digits_cnn"), "sgd", false);
  request.spec.optimizer.rate = 1e-5;
  for (const StateVariable& state : import_training(model, {}, request).module.states) {
    EXPECT_TRUE(is_integer(state.initial.element()) || state.initial.element() == ElementType::f32)
        << state.name;
  }
  const TrainingLibrary small(model, request, "jit");
  Student slow(small);
  const Literal start = slow.parameters();
  const double first = slow.step(digits_batch(0, ElementType::f16));
  for (int step = 1; step < 10; ++step) slow.step(digits_batch(0, ElementType::f16));
  EXPECT_GT(relative_distance(start, slow.parameters()), 1e-6);
  EXPECT_LT(slow.step(digits_batch(0, ElementType::f16)), first);

  const TrainingLibrary library(model, adam(), "jit");
  Student student(library);
  for (int64_t step = 0; step < 10; ++step) student.step(digits_batch(step, ElementType::f16));
  std::vector<Literal> images, learnt;
  for (int64_t i = 0; i < kImages; ++i) {
    images.push_back(image(i).converted_to(ElementType::f16));
    learnt.push_back(student.run({images.back()}).at(0));
  }
  const std::vector<Literal> exported = run_alone(export_model(model, student.save()), images);
  for (size_t i = 0; i < learnt.size(); ++i) {
    EXPECT_EQ(exported[i].element(), ElementType::f16);
    EXPECT_LT(relative_distance(exported[i], learnt[i]), 4e-3) << "image " << i;
  }
}

/// The file gets initializers for statistics that its exporter had merged.
TEST(Export, MergedStatisticsAreSeparate) {
  const std::string model = reference_model("merged");
  TrainingRequest request;
  request.batch = 8;
  request.spec.loss.kind = LossKind::mse;
  const TrainingLibrary library(model, request, "jit");
  std::vector<double> values;
  for (int i = 0; i < 8 * 4 * 6 * 6; ++i) values.push_back((i * 37 % 101) / 25.0 - 1);
  const Literal x = Literal::from_doubles(ElementType::f32, {8, 4, 6, 6}, values);
  Student student(library);
  for (int step = 0; step < 3; ++step) student.step({x, x});
  values.resize(4 * 6 * 6);
  const Literal one = Literal::from_doubles(ElementType::f32, {1, 4, 6, 6}, values);
  const Literal expected = student.run({one}).at(0);
  const Literal actual = run_alone(export_model(model, student.save()), {one})[0];
  EXPECT_LT(relative_distance(actual, expected), 1e-5);
  EXPECT_GT(relative_distance(run_file(model, {one})[0], expected), 1e-2)
      << "training changed nothing";
}

TEST(Export, BrokenAndForeignCheckpointsAreRefused) {
  const std::string model = reference_model("digits_cnn");
  const TrainingLibrary library(model, adam(), "jit");
  const std::string good = Student(library).save();
  EXPECT_NO_THROW(export_model(model, good));
  expect_refused(reference_model("digits_mlp"), good, "it is of another model");
  expect_refused(reference_model("kws"), good, "it is of another model");
  expect_refused(model, "", "no checkpoint");
  expect_refused(model, read_file(model), "no checkpoint");
  std::string other = good;
  other[4] = 9;
  expect_refused(model, other, "version 9");
  expect_refused(model, good + "x", "1 bytes follow");
  for (size_t length = 4; length < good.size(); length += 997) {
    expect_refused(model, good.substr(0, length), "cut short");
  }
  for (size_t at = 8; at < good.size(); at += 331) {
    std::string flipped = good;
    flipped[at] = static_cast<char>(flipped[at] ^ 1 << at % 8);
    expect_refused(model, flipped, "changed");
  }
}

}  // namespace
}  // namespace backcast::training
