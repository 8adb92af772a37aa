// Ways of training that must come to the same.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <thread>

#include "tests/training/batches.h"
#include "tests/training/student.h"

namespace backcast::training {
namespace {

using Json = nlohmann::json;

Network digits_of(int64_t batch_size) {
  Network result = network("digits_cnn");
  result.input[0] = batch_size;
  return result;
}

std::vector<Literal> digits_batch(int64_t size, int64_t step, ElementType element) {
  return batch(digits_of(size), step, element, training_digits());
}

struct Precision {
  bool promote;
  double most;  // distance relative to what ten updates moved
};

class Accumulation : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Optimizers, Accumulation, testing::Values("sgd", "adam"));

/// Batches of 4 in fours and batches of 16. In double, "to rounding" leaves no room for anything
/// else; Adam divides by roots of tiny numbers, which in single precision magnifies the rounding.
TEST_P(Accumulation, FourBatchesOfFourAreOneOfSixteen) {
  const std::string optimizer = GetParam();
  const double single = optimizer == "adam" ? 1e-3 : 1e-5;
  for (const Precision& precision : {Precision{true, 1e-9}, Precision{false, single}}) {
    const ElementType element = precision.promote ? ElementType::f64 : ElementType::f32;
    const TrainingRequest whole = request_for(digits_of(16), optimizer, precision.promote);
    TrainingRequest parts = request_for(digits_of(4), optimizer, precision.promote);
    parts.spec.accumulate = 4;
    const std::string model = reference_model("digits_cnn");
    const TrainingLibrary at_once(model, whole, "jit"), in_parts(model, parts, "jit");
    Student one(at_once), four(in_parts);
    const Literal start = one.parameters();
    for (int64_t step = 0; step < 10; ++step) {
      const double loss = one.step(digits_batch(16, step, element));
      double mean = 0;
      for (int64_t k = 0; k < 4; ++k) {
        mean += four.step(digits_batch(4, 4 * step + k, element)) / 4;
      }
      four.apply();
      EXPECT_NEAR(mean, loss, 10 * precision.most) << "step " << step;
    }
    const double moved = relative_distance(start, one.parameters());
    EXPECT_GT(moved, 1e-2);
    EXPECT_LT(relative_distance(four.parameters(), one.parameters()), precision.most * moved)
        << (precision.promote ? "f64" : "f32");
  }
}

class Forms : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Libraries, Forms, testing::Values("jit", "gcc"));

Network autoencoder_of(int64_t batch_size) {
  Network result = network("ad");
  result.input[0] = batch_size;
  return result;
}

/// Each tensor of a batch of one, twice.
std::vector<Literal> doubled(const std::vector<Literal>& batch) {
  std::vector<Literal> result;
  for (const Literal& tensor : batch) {
    std::vector<int64_t> shape = tensor.shape();
    shape[0] *= 2;
    std::vector<double> values;
    for (int64_t i = 0; i < 2 * tensor.element_count(); ++i) {
      values.push_back(tensor.as_double(i % tensor.element_count()));
    }
    result.push_back(Literal::from_doubles(tensor.type().element, shape, values));
  }
  return result;
}

/// At batch 1 a dense layer's gradient and its update share a kernel; at batch 2 they do not.
TEST(Batches, OneSampleIsTheSameSampleTwice) {
  for (const char* optimizer : {"sgd", "momentum"}) {
    const std::string model = reference_model("ad");
    const TrainingLibrary of_one(model, request_for(autoencoder_of(1), optimizer, false), "jit");
    const TrainingLibrary of_two(model, request_for(autoencoder_of(2), optimizer, false), "jit");
    Student one(of_one), two(of_two);
    const Literal start = one.parameters();
    for (int64_t step = 0; step < 10; ++step) {
      const std::vector<Literal> sample =
          batch(autoencoder_of(1), step, ElementType::f32, training_digits());
      const double loss = one.step(sample);
      EXPECT_NEAR(two.step(doubled(sample)), loss, 1e-5) << optimizer << ", step " << step;
    }
    const double moved = relative_distance(start, one.parameters());
    EXPECT_GT(moved, 1e-4);
    EXPECT_LT(relative_distance(two.parameters(), one.parameters()), 1e-4 * moved) << optimizer;
  }
}

TEST(Batches, AreOfTheirOwnSizeWhateverInferenceTakes) {
  struct Row {
    std::optional<DimRange> dim;
    int64_t batch, examples;
    Dim inference;
  };
  for (const Row& row : {Row{{}, 0, 1, 1}, Row{{}, 4, 4, 1}, Row{DimRange{3, 3}, 0, 3, 3},
                         Row{DimRange{3, 3}, 4, 4, 3}, Row{DimRange{1, 3}, 4, 4, Dim::symbol("N")},
                         Row{DimRange{1, 3}, 0, 0, Dim::symbol("N")}}) {
    ImportOptions options;
    if (row.dim) options.dims["N"] = *row.dim;
    TrainingRequest request;
    request.batch = row.batch;
    const ImportedTraining training =
        import_training(reference_model("digits_mlp"), options, request);
    EXPECT_EQ(training.module.batch, row.examples);
    const Function& run = training.model.module.function("main");
    EXPECT_EQ(run.type(run.params[0]).tensor().shape[0], row.inference);
  }
}

/// Minimal filtering of convolutions and of their gradients, of an image without the blank corners
/// of digits: where all of a window is zero, a sum is zero only if it is computed directly, and the
/// derivative of a rectifier sees the difference.
TEST(Winograd, TrainsTheSame) {
  for (const char* name : {"digits_cnn", "ic"}) {
    const std::string model = reference_model(name);
    const Network net = network(name);
    const TrainingRequest request = request_for(net, "sgd", true);
    std::vector<Literal> sample = batch(net, 0, ElementType::f64, training_digits());
    std::mt19937 random(5);
    std::uniform_real_distribution<double> real(-1, 1);
    std::vector<double> image(static_cast<size_t>(sample[0].element_count()));
    for (double& value : image) value = real(random);
    sample[0] = Literal::from_doubles(ElementType::f64, sample[0].shape(), image);
    for (const char* schedules : {"native", "cortex-m4"}) {
      const TrainingLibrary direct(model, request, "jit", {}, schedules);
      const TrainingLibrary transformed(model, request, "jit", {.winograd = WinogradMode::on},
                                        schedules);
      Student one(direct), other(transformed);
      const Literal start = one.parameters();
      const double loss = one.step(sample);
      EXPECT_NEAR(other.step(sample), loss, 1e-12) << name << ", " << schedules;
      const double moved = relative_distance(start, one.parameters());
      EXPECT_GT(moved, 1e-6) << name << ", " << schedules;
      EXPECT_LT(relative_distance(other.parameters(), one.parameters()), 1e-10 * moved)
          << name << ", " << schedules;
    }
  }
}

TEST(Winograd, NeverRaisesTheArenaOfAMicrocontroller) {
  Network net = network("ic");
  net.input[0] = 1;
  CompileRequest request;
  request.model = reference_model("ic");
  request.target = "cortex-m4";
  request.training = request_for(net, "sgd", false);
  const CompiledModel direct = compile_model(request);
  request.pipeline.passes.winograd.mode = WinogradMode::automatic;
  const CompiledModel automatic = compile_model(request);
  EXPECT_LE(automatic.result.program.arena_bytes, direct.result.program.arena_bytes);
  const std::vector<WinogradLayer>& layers = automatic.result.notes.winograd.layers;
  EXPECT_GE(std::count_if(layers.begin(), layers.end(),
                          [](const WinogradLayer& layer) { return layer.tile > 0; }),
            8);
}

TEST_P(Forms, TwoThreadsAreTwoAlone) {
  const TrainingLibrary library(reference_model("digits_cnn"),
                                request_for(network("digits_cnn"), "adam", false), GetParam());
  constexpr int64_t kSteps = 100;
  const auto learn = [&](Student& student, int64_t offset) {
    for (int64_t step = 0; step < kSteps; ++step) {
      student.step(digits_batch(8, (step * 3 + offset) % 180, ElementType::f32));
    }
  };
  training_digits();  // read before there are threads
  Student alone[2] = {Student(library, 1), Student(library, 2)};
  for (int64_t i = 0; i < 2; ++i) learn(alone[i], 7 * i);
  ASSERT_FALSE(alone[0].save() == alone[1].save());
  Student together[2] = {Student(library, 1), Student(library, 2)};
  std::thread other([&] { learn(together[1], 7); });
  learn(together[0], 0);
  other.join();
  EXPECT_TRUE(together[0].save() == alone[0].save());
  EXPECT_TRUE(together[1].save() == alone[1].save());
}

/// Parameters through the flat vector, into a state that has seen other things: with an optimizer
/// that keeps nothing else, it goes on as the first one.
TEST_P(Forms, FlatParametersAreTheParameters) {
  const TrainingLibrary library(reference_model("digits_cnn"),
                                request_for(network("digits_cnn"), "sgd", false), GetParam());
  Student first(library), second(library);
  for (int64_t step = 0; step < 5; ++step) {
    first.step(digits_batch(8, step, ElementType::f32));
    second.step(digits_batch(8, 50 + step, ElementType::f32));
  }
  ASSERT_GT(relative_distance(first.parameters(), second.parameters()), 1e-3);
  second.set_parameters(first.parameters());
  EXPECT_TRUE(second.save() == first.save());
  first.set_parameters(first.parameters());
  for (int64_t step = 5; step < 10; ++step) {
    const std::vector<Literal> images = digits_batch(8, step, ElementType::f32);
    EXPECT_EQ(first.step(images), second.step(images));
  }
  EXPECT_TRUE(second.save() == first.save());
}

/// What PyTorch does when all but the last layer has requires_grad=False.
void check_frozen(const Json& expected) {
  const Network& net = network(expected.at("model").get<std::string>());
  TrainingRequest request = request_for(net, expected.at("optimizer").get<std::string>(), true);
  request.spec.trainable.expressions = {expected.at("trainable").get<std::string>()};
  const TrainingLibrary library(reference_model(net.name), request, "jit");
  Student student(library);
  const Json& losses = expected.at("loss");
  for (size_t step = 0; step < losses.size(); ++step) {
    const double loss =
        student.step(batch(net, static_cast<int64_t>(step), ElementType::f64, training_digits()));
    EXPECT_NEAR(loss, losses[step].get<double>(), 1e-6) << "step " << step;
  }
  const Literal flat = student.parameters();
  std::set<std::string> trained, wanted;
  int64_t at = 0;
  for (const StateVariableAbi& variable : library.model.abi.state.variables) {
    const loop::Buffer& buffer = library.model.result.program.buffer(variable.buffer);
    if (buffer.role != StateRole::parameter) continue;
    trained.insert(buffer.loc.node);
    const Json& reference = expected.at("parameters").at(buffer.loc.node);
    ASSERT_EQ(static_cast<int64_t>(reference.size()), buffer.value.element_count());
    double difference = 0, all = 0;
    for (const Json& value : reference) {
      const double d = flat.as_double(at++) - value.get<double>();
      difference += d * d;
      all += value.get<double>() * value.get<double>();
    }
    EXPECT_LT(std::sqrt(difference / all), 1e-6) << buffer.loc.node;
  }
  for (const auto& [name, values] : expected.at("parameters").items()) wanted.insert(name);
  EXPECT_EQ(trained, wanted);
}

TEST(Freezing, OnlyTheLastLayerLearnsAsInPyTorch) {
  std::ifstream file(std::string(BACKCAST_TRAINING_REFERENCES) + "/freeze.json");
  const Json cases = Json::parse(file);
  ASSERT_EQ(cases.size(), 8u);
  for (const Json& one : cases) {
    SCOPED_TRACE(one.at("model").get<std::string>() + " " + one.at("optimizer").get<std::string>());
    check_frozen(one);
  }
}

/// Test images that a model puts right.
int64_t right_images(Student& student) {
  const Digits& digits = test_digits();
  int64_t right = 0;
  for (size_t i = 0; i < digits.images.size(); ++i) {
    const Literal image = Literal::from_doubles(ElementType::f32, {1, 1, 8, 8}, digits.images[i]);
    const Literal scores = student.run({image}).at(0);
    int64_t best = 0;
    for (int64_t k = 1; k < 10; ++k) {
      if (scores.as_double(k) > scores.as_double(best)) best = k;
    }
    right += best == digits.labels[i] ? 1 : 0;
  }
  return right;
}

void learn_epoch(Student& student, int64_t epoch, int64_t batch_size) {
  const Digits& digits = training_digits();
  const int64_t count = static_cast<int64_t>(digits.labels.size());
  const std::vector<int64_t> turn = order("digits/epoch/" + std::to_string(epoch), count);
  for (int64_t start = 0; start + batch_size <= count; start += batch_size) {
    std::vector<double> pixels, labels;
    for (int64_t i = start; i < start + batch_size; ++i) {
      const size_t image = static_cast<size_t>(turn[static_cast<size_t>(i)]);
      pixels.insert(pixels.end(), digits.images[image].begin(), digits.images[image].end());
      labels.push_back(static_cast<double>(digits.labels[image]));
    }
    student.step({Literal::from_doubles(ElementType::f32, {batch_size, 1, 8, 8}, pixels),
                  Literal::from_doubles(ElementType::i32, {batch_size}, labels)});
  }
}

TEST_P(Forms, DigitsFromScratch) {
  std::ifstream file(std::string(BACKCAST_TRAINING_REFERENCES) + "/digits.json");
  const Json reference = Json::parse(file);
  for (const std::string name : {"digits_cnn", "digits_mlp"}) {
    SCOPED_TRACE(name);
    TrainingRequest request = request_for(network(name), "adam", false);
    request.spec.optimizer.rate = reference.at("rate").get<double>();
    const TrainingLibrary library(reference_model(name), request, GetParam());
    Student student(library);
    const Json& expected = reference.at(name);
    int64_t epoch = 0, right = 0;
    for (const Json& count : expected.at("right")) {
      learn_epoch(student, epoch++, reference.at("batch").get<int64_t>());
      right = right_images(student);
      EXPECT_LE(std::abs(right - count.get<int64_t>()), 2) << "epoch " << epoch;
    }
    EXPECT_EQ(static_cast<int64_t>(test_digits().images.size()),
              reference.at("images").get<int64_t>());
    EXPECT_GE(right, expected.at("target_right").get<int64_t>());
  }
}

}  // namespace
}  // namespace backcast::training
