// Fifty training steps held against PyTorch's: losses of every step, parameters at the end.
//   trajectories [--f64] [--winograd] [--how jit|lib|c] [--target T] NETWORK/OPTIMIZER…
// --winograd: 3×3 convolutions and their gradients by minimal filtering, wherever possible.
// Bounds: in double 1e-4; in single precision 1e-3 for networks without batch normalisation, for
// the others three times the distance of PyTorch's own single from its double precision.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "ir/graph/error.h"
#include "tests/training/batches.h"
#include "tests/training/learner.h"
#include "tests/training/networks.h"

namespace backcast::training {
namespace {

using Json = nlohmann::json;

constexpr int64_t kSteps = 50;
const std::filesystem::path kFolder = BACKCAST_TRAINING_REFERENCES;

struct Options {
  bool promote = false, winograd = false;
  std::string how = "jit", target = "native";
  std::vector<std::string> cases;
};

struct Distances {
  double loss = 0;        // largest over the steps, relative to max(1, |loss|)
  double parameters = 0;  // norm of the difference over the norm of all
};

double worst_loss(const std::vector<double>& losses, const Json& expected) {
  double worst = 0;
  for (size_t i = 0; i < losses.size(); ++i) {
    const double reference = expected[i].get<double>();
    // A NaN must not look small.
    const double distance = std::abs(losses[i] - reference) / std::max(1.0, std::abs(reference));
    worst = distance <= worst ? worst : distance;
  }
  return worst;
}

/// From the stored norms and projections of every parameter.
double parameter_distance(const CompiledModel& model, const Literal& flat, const Json& expected) {
  double difference = 0, all = 0;
  int64_t at = 0;
  for (const StateVariableAbi& variable : model.abi.state.variables) {
    const loop::Buffer& buffer = model.result.program.buffer(variable.buffer);
    if (buffer.role != StateRole::parameter) continue;
    const std::string& name = buffer.loc.node;
    const int64_t count = buffer.value.element_count();
    std::vector<double> values;
    for (int64_t i = 0; i < count; ++i) values.push_back(flat.as_double(at + i));
    at += count;
    const Json& reference = expected.at(name);
    const double norm = reference.at("norm").get<double>();
    all += norm * norm;
    double sum = 0;
    for (int64_t k = 0; k < kProjections; ++k) {
      const double d = project(name, k, values.data(), count) -
                       reference.at("projections")[static_cast<size_t>(k)].get<double>();
      sum += d * d;
    }
    difference += sum / kProjections;
  }
  return std::sqrt(difference / all);
}

Distances bounds_of(const Options& options, const Network& network, const Json& reference) {
  if (options.promote) return {1e-4, 1e-4};
  if (!network.batch_norm) return {1e-3, 1e-3};
  double loss = 0;
  for (const Json& d : reference.at("loss_distance_f32")) loss = std::max(loss, d.get<double>());
  double parameters = 0;
  for (const Json& d : reference.at("parameter_distance_f32")) {
    parameters = std::max(parameters, d.get<double>());
  }
  return {3 * loss, 3 * parameters};
}

bool run_case(const Options& options, const std::string& name) {
  const size_t slash = name.find('/');
  const Network& net = network(name.substr(0, slash));
  const std::string optimizer = name.substr(slash + 1);
  std::ifstream file(kFolder / "trajectories" / net.name / (optimizer + ".json"));
  const Json reference = Json::parse(file);
  CompileRequest request;
  request.model = kFolder / "models" / (net.name + ".onnx");
  request.target = options.target;
  request.training = request_for(net, optimizer, options.promote);
  if (options.winograd) request.pipeline.passes.winograd.mode = WinogradMode::on;
  const CompiledModel model = compile_model(request);
  const std::unique_ptr<Learner> learner =
      options.how == "jit" ? make_jit_learner(model)
                           : make_device_learner(model, parse_emit(options.how, model.target));
  const Digits digits = read_digits(BACKCAST_DIGITS_TRAIN);
  const ElementType element = options.promote ? ElementType::f64 : ElementType::f32;
  std::vector<Call> calls{{"init", {Literal::scalar(ElementType::u64, 1)}}};
  for (int64_t step = 0; step < kSteps; ++step) {
    calls.push_back({"train_step", batch(net, step, element, digits)});
  }
  calls.push_back({"get_parameters", {}});
  const std::vector<std::vector<Literal>> replies = learner->run(calls);
  std::vector<double> losses;
  for (int64_t step = 0; step < kSteps; ++step) {
    losses.push_back(replies[static_cast<size_t>(step + 1)].at(0).as_double(0));
  }
  const Distances bounds = bounds_of(options, net, reference);
  const Distances found{
      worst_loss(losses, reference.at("loss")),
      parameter_distance(model, replies.back().at(0), reference.at("parameters"))};
  const bool passed = found.loss <= bounds.loss && found.parameters <= bounds.parameters;
  fmt::print("{:<22} {:<4} {:<10} loss {:.2e} of {:.1e}, parameters {:.2e} of {:.1e}  {}\n", name,
             options.how, options.target, found.loss, bounds.loss, found.parameters,
             bounds.parameters, passed ? "ok" : "FAILED");
  std::fflush(stdout);
  return passed;
}

}  // namespace
}  // namespace backcast::training

int main(int argc, char** argv) {
  backcast::training::Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--f64") {
      options.promote = true;
    } else if (word == "--winograd") {
      options.winograd = true;
    } else if (word == "--how" && i + 1 < argc) {
      options.how = argv[++i];
    } else if (word == "--target" && i + 1 < argc) {
      options.target = argv[++i];
    } else {
      options.cases.push_back(word);
    }
  }
  bool passed = !options.cases.empty();
  for (const std::string& name : options.cases) {
    try {
      passed = backcast::training::run_case(options, name) && passed;
    } catch (const std::exception& error) {
      fmt::print("{}: {}\n", name, error.what());
      passed = false;
    }
  }
  return passed ? 0 : 1;
}
