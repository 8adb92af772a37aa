#include "tests/training/networks.h"

#include "driver/compiler.h"
#include "ir/graph/error.h"
#include "tests/training/batches.h"

namespace backcast::training {

const Network& network(const std::string& name) {
  static const std::vector<Network> networks{
      {"digits_mlp", {8, 1, 8, 8}, 10, false},
      {"digits_cnn", {8, 1, 8, 8}, 10, false},
      {"kws", {8, 1, 49, 10}, 12, true},
      {"ic", {8, 3, 32, 32}, 10, true},
      {"ad", {8, 640}, 0, true},
      {"enc", {8, 64, 128}, 10, false},
  };
  for (const Network& candidate : networks) {
    if (candidate.name == name) return candidate;
  }
  throw CompileError("there are no references for \"" + name + "\"");
}

Digits read_digits(const std::filesystem::path& file) {
  constexpr size_t kPixels = 64;
  const std::string bytes = read_file(file.string());
  Digits digits;
  for (size_t at = 0; at + kPixels < bytes.size(); at += kPixels + 1) {
    std::vector<double> image;
    for (size_t i = 0; i < kPixels; ++i) {
      image.push_back(static_cast<unsigned char>(bytes[at + i]) / 16.0);
    }
    digits.images.push_back(std::move(image));
    digits.labels.push_back(static_cast<unsigned char>(bytes[at + kPixels]));
  }
  return digits;
}

std::vector<Literal> batch(const Network& network, int64_t step, ElementType element,
                           const Digits& digits) {
  int64_t elements = 1;
  for (int64_t extent : network.input) elements *= extent;
  const int64_t size = network.input[0];
  std::vector<double> values;
  std::vector<int64_t> classes;
  if (network.name.starts_with("digits")) {
    for (int64_t i = 0; i < size; ++i) {
      const size_t at = static_cast<size_t>(size * step + i);
      values.insert(values.end(), digits.images[at].begin(), digits.images[at].end());
      classes.push_back(digits.labels[at]);
    }
  } else {
    values = batch_inputs(network.name, step, elements);
    classes = batch_classes(network.name, step, size, std::max<int64_t>(network.classes, 1));
  }
  const Literal input = Literal::from_doubles(element, network.input, values);
  if (network.classes == 0) return {input, input};
  std::vector<double> labels(classes.begin(), classes.end());
  return {input, Literal::from_doubles(ElementType::i32, {size}, labels)};
}

TrainingRequest request_for(const Network& network, const std::string& optimizer, bool promote) {
  TrainingRequest request;
  request.batch = network.input[0];
  request.promote = promote;
  request.spec.loss.kind = network.classes == 0 ? LossKind::mse : LossKind::cross_entropy;
  OptimizerSpec& spec = request.spec.optimizer;
  if (optimizer == "sgd") {
    spec.kind = OptimizerKind::sgd;
    spec.rate = 0.05;
  } else if (optimizer == "momentum" || optimizer == "nesterov") {
    spec.kind = optimizer == "momentum" ? OptimizerKind::momentum : OptimizerKind::nesterov;
    spec.rate = 0.01;
    spec.momentum = 0.9;
  } else {
    BC_CHECK(optimizer == "adam" || optimizer == "adamw", "no references for {}", optimizer);
    spec.kind = optimizer == "adam" ? OptimizerKind::adam : OptimizerKind::adamw;
    spec.rate = 1e-3;
  }
  return request;
}

}  // namespace backcast::training
