// See named_activation.h.
#include "frontend/rules/named_activation.h"

#include <algorithm>
#include <optional>

namespace backcast {
namespace {

struct Row {
  const char* name;
  std::optional<double> alpha, beta;  // defaults, where the function takes one
};

constexpr double kNoDefault = 1;  // of Affine and ScaledTanh ONNX states none
const Row kRows[] = {
    {"Relu", {}, {}},
    {"Tanh", {}, {}},
    {"Sigmoid", {}, {}},
    {"Softsign", {}, {}},
    {"Softplus", {}, {}},
    {"Affine", kNoDefault, 0},
    {"LeakyRelu", 0.01, {}},
    {"ThresholdedRelu", 1, {}},
    {"ScaledTanh", kNoDefault, kNoDefault},
    {"HardSigmoid", 0.2, 0.5},
    {"Elu", 1, {}},
};

bool equal_letters(const std::string& a, const std::string& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](unsigned char x, unsigned char y) { return tolower(x) == tolower(y); });
}

const Row& find_row(const NodeContext& n, const std::string& name) {
  for (const Row& row : kRows) {
    if (equal_letters(row.name, name)) return row;
  }
  n.fail(fmt::format("activation \"{}\" is not known", name));
}

ValueId softplus(Emitter& e, ValueId x) {
  // max(x, 0) + log(1 + exp(-|x|)) does not overflow.
  const ValueId small = e.unary(ops::exp, e.unary(ops::neg, e.unary(ops::abs, x)));
  return e.add(e.unary(ops::relu, x), e.unary(ops::log, e.add(small, 1)));
}

}  // namespace

ValueId NamedActivation::apply(Emitter& e, ValueId x) const {
  if (name == "Relu") return e.unary(ops::relu, x);
  if (name == "Tanh") return e.unary(ops::tanh, x);
  if (name == "Sigmoid") return e.unary(ops::sigmoid, x);
  if (name == "Softsign") return e.div(x, e.add(e.unary(ops::abs, x), 1));
  if (name == "Softplus") return softplus(e, x);
  if (name == "Affine") return e.add(e.mul(x, alpha), beta);
  if (name == "ScaledTanh") return e.mul(e.unary(ops::tanh, e.mul(x, beta)), alpha);
  if (name == "HardSigmoid") return e.clamp(e.add(e.mul(x, alpha), beta), 0, 1);
  const ValueId zero = e.like(x, 0);
  if (name == "LeakyRelu") {
    return e.select(e.compare(Comparison::lt, x, 0), e.mul(x, alpha), x);
  }
  if (name == "ThresholdedRelu") {
    return e.select(e.compare(Comparison::gt, x, alpha), x, zero);
  }
  // Elu. The exponent is kept from overflowing where it is not chosen.
  const ValueId below = e.mul(e.sub(e.unary(ops::exp, e.min(x, zero)), 1), alpha);
  return e.select(e.compare(Comparison::lt, x, 0), below, x);
}

NamedActivation named_activation(const NodeContext& n, const std::string& name,
                                 std::optional<double> alpha, std::optional<double> beta) {
  const Row& row = find_row(n, name);
  return {row.name, alpha.value_or(row.alpha.value_or(0)), beta.value_or(row.beta.value_or(0))};
}

std::vector<NamedActivation> recurrent_activations(const NodeContext& n,
                                                   const std::vector<std::string>& defaults,
                                                   int64_t directions) {
  std::vector<std::string> names;
  const OnnxAttribute* given = n.find("activations");
  if (given && !given->strings.empty()) names = given->strings;
  const size_t wanted = defaults.size() * static_cast<size_t>(directions);
  const bool is_default = names.empty();
  while (is_default && names.size() < wanted) {
    names.insert(names.end(), defaults.begin(), defaults.end());
  }
  if (names.size() != wanted) {
    n.fail(
        fmt::format("attribute \"activations\" has {} entries and needs {}", names.size(), wanted));
  }
  const std::vector<float> alphas = n.attr_floats("activation_alpha");
  const std::vector<float> betas = n.attr_floats("activation_beta");
  size_t alpha = 0, beta = 0;
  std::vector<NamedActivation> result;
  for (const std::string& name : names) {
    const Row& row = find_row(n, name);
    NamedActivation activation{row.name};
    if (row.alpha) activation.alpha = alpha < alphas.size() ? alphas[alpha++] : *row.alpha;
    if (row.beta) activation.beta = beta < betas.size() ? betas[beta++] : *row.beta;
    result.push_back(std::move(activation));
  }
  return result;
}

}  // namespace backcast
