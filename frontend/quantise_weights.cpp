#include "frontend/quantise_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "frontend/constant_names.h"
#include "frontend/graph_names.h"
#include "frontend/loop_states.h"
#include "frontend/node_kinds.h"
#include "frontend/onnx_tensors.h"

namespace backcast {
namespace {

// A channel's scale and zero point, in bytes.
constexpr int64_t kBytesOfChannel = 5;

bool is_worth(const Channels& weights) {
  const auto count = static_cast<int64_t>(weights.values.size());
  return count + kBytesOfChannel * static_cast<int64_t>(weights.count()) <= 2 * count;
}

class WeightSearch {
 public:
  WeightSearch(const OnnxGraph& graph, const StaysFloat& stays_float)
      : constants_(graph), stays_float_(stays_float) {
    count_definitions(graph, 0);
    visit(graph, 0);
  }

  WeightPlan plan() { return std::move(plan_); }

 private:
  void count_definitions(const OnnxGraph& graph, int depth) {
    for (const std::string& name : defined_names(graph)) ++definitions_[name];
    if (depth == kMaxGraphDepth) return;
    for (const OnnxNode& node : graph.nodes) {
      for (const OnnxAttribute& attribute : node.attributes) {
        if (attribute.g) count_definitions(*attribute.g, depth + 1);
      }
    }
  }

  void visit(const OnnxGraph& graph, int depth) {
    if (depth > 0) {
      for (const auto& [name, tensor] : constants_of(graph)) {
        if (definitions_[name] == 1) inner_[name] = tensor;
      }
    }
    for (const OnnxNode& node : graph.nodes) {
      visit(node);
      if (depth == kMaxGraphDepth) continue;
      // What a loop hands on from trip to trip is, in its body, what it was given.
      const std::optional<LoopWithoutUnchanged> loop = without_unchanged_states(node);
      for (const OnnxAttribute& attribute : (loop ? loop->node : node).attributes) {
        if (!attribute.g) continue;
        plan_.graphs.push_back(attribute.g);
        visit(*attribute.g, depth + 1);
      }
    }
  }

  /// Whether a movement leaves channels where they are.
  static bool keeps_axes(const OnnxNode& node) {
    const std::string& type = node.op_type;
    return is_movement(node) && (type == "Identity" || type == "Slice" || type == "Split");
  }

  const std::string& source(const std::string& name) const {
    const auto found = given_.find(name);
    return found == given_.end() ? name : found->second;
  }

  bool is_float(const std::string& name) const {
    const auto found = inner_.find(name);
    if (found != inner_.end()) return found->second->data_type == onnx_type::kFloat;
    return constants_.is_float(name) && definitions_.at(name) == 1;
  }

  void visit(const OnnxNode& node) {
    const bool is_part = keeps_axes(node) && !constants_.is_computed(node.outputs[0]);
    if (is_part && is_float(source(node.inputs[0]))) {
      for (const std::string& output : node.outputs) given_[output] = source(node.inputs[0]);
    }
    const bool is_constant = std::ranges::all_of(
        node.inputs, [&](const std::string& name) { return constants_.is_constant(name); });
    if (is_constant) return;
    bool is_left = false;
    for (const size_t input : weight_inputs(node)) {
      const std::string& name = source(node.inputs[input]);
      if (!is_float(name)) continue;
      is_left = is_left || stays_float_(node);
      if (is_left || !found_.insert(name).second) continue;
      plan_.weights.push_back({name, &node, input});
      if (constants_.is_computed(name)) plan_.computed.insert(name);
      if (const auto inner = inner_.find(name); inner != inner_.end()) plan_.inner.insert(*inner);
    }
    if (!is_left) return;
    plan_.left.push_back(fmt::format("{} ({}): as was asked", name_of(node), node.op_type));
  }

  const ConstantNames constants_;
  const StaysFloat& stays_float_;
  std::map<std::string, int> definitions_;          // in all graphs together
  std::map<std::string, const OnnxTensor*> inner_;  // constants of graphs within nodes
  std::map<std::string, std::string> given_;        // parts of constants within bodies: what of
  std::set<std::string> found_;
  WeightPlan plan_;
};

/// Takes a name from what a node of the graph computes.
void take_name(const OnnxGraph& graph, const std::string& name, QuantisedParts& parts) {
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const std::vector<std::string>& outputs = graph.nodes[i].outputs;
    const auto output = std::ranges::find(outputs, name);
    if (output == outputs.end()) continue;
    const auto k = static_cast<size_t>(output - outputs.begin());
    parts.edit.outputs[{i, k}] = parts.free(name);
    if (outputs.size() == 1) parts.edit.removed.insert(i);
  }
}

}  // namespace

WeightPlan plan_weights(const OnnxGraph& graph, const StaysFloat& stays_float) {
  return WeightSearch(graph, stays_float).plan();
}

QuantisedWeights quantise_weights(const OnnxModel& model, const WeightPlan& plan,
                                  const ComputedConstants& computed,
                                  const std::filesystem::path& model_dir) {
  ComputedConstants values = computed;
  for (const auto& [name, tensor] : plan.inner)
    values.emplace(name, to_literal(*tensor, model_dir));
  QuantisedParts parts(model, values, model_dir);
  size_t tensors = 0;
  for (const WeightPlan::Weight& weight : plan.weights) {
    Channels channels = parts.read(weight.name);
    channels.axis = channel_axis(*weight.reader, weight.input, channels.shape.size());
    if (!is_worth(channels)) continue;
    const QuantisedParts::Integers made =
        parts.integers(weight.name, ElementType::i8, channels, rounded_scales(channels.scales()));
    parts.insert(
        {}, parts.linear("DequantizeLinear", made.name, made.format, weight.name, channels.axis));
    parts.edit.redefined.insert(weight.name);
    take_name(model.graph, weight.name, parts);
    ++tensors;
  }
  return {std::move(parts.edit), tensors};
}

}  // namespace backcast
