#include "frontend/quantise_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "frontend/constant_names.h"
#include "frontend/node_kinds.h"

namespace backcast {
namespace {

// A channel's scale and zero point, in bytes.
constexpr int64_t kBytesOfChannel = 5;

bool is_worth(const Channels& weights) {
  const auto count = static_cast<int64_t>(weights.values.size());
  return count + kBytesOfChannel * static_cast<int64_t>(weights.count()) <= 2 * count;
}

}  // namespace

WeightPlan plan_weights(const OnnxGraph& graph, const StaysFloat& stays_float) {
  const ConstantNames constants(graph);
  WeightPlan plan;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const OnnxNode& node = graph.nodes[i];
    std::vector<size_t> inputs;
    for (const size_t input : weight_inputs(node)) {
      if (constants.is_float(node.inputs[input])) inputs.push_back(input);
    }
    const bool is_constant = std::ranges::all_of(
        node.inputs, [&](const std::string& name) { return constants.is_constant(name); });
    if (inputs.empty() || is_constant) continue;
    if (stays_float(node)) {
      const std::string& name = node.name.empty() ? node.outputs[0] : node.name;
      plan.left.push_back(fmt::format("{} ({}): as was asked", name, node.op_type));
      continue;
    }
    for (const size_t input : inputs) {
      plan.weights.push_back({i, input});
      if (constants.is_computed(node.inputs[input])) plan.computed.insert(node.inputs[input]);
    }
  }
  return plan;
}

QuantisedWeights quantise_weights(const OnnxModel& model, const WeightPlan& plan,
                                  const ComputedConstants& computed,
                                  const std::filesystem::path& model_dir) {
  QuantisedParts parts(model, computed, model_dir);
  std::map<std::pair<std::string, std::optional<size_t>>, std::string> decoded;
  for (const WeightPlan::Weight& weight : plan.weights) {
    const OnnxNode& node = model.graph.nodes[weight.node];
    const std::string& name = node.inputs[weight.input];
    Channels values = parts.read(name);
    values.axis = channel_axis(node, weight.input, values.shape.size());
    if (!is_worth(values)) continue;
    std::string& floats = decoded[{name, values.axis}];
    if (floats.empty()) {
      floats = parts.decoded(name, ElementType::i8, values, rounded_scales(values.scales()));
    }
    parts.edit.inputs[{weight.node, weight.input}] = floats;
  }
  return {std::move(parts.edit), decoded.size()};
}

}  // namespace backcast
