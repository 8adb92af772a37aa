#include "frontend/constant_names.h"

#include <algorithm>

#include "frontend/graph_names.h"
#include "frontend/node_kinds.h"

namespace backcast {

ConstantNames::ConstantNames(const OnnxGraph& graph) : given_(constants_of(graph)) {
  for (const size_t i : topological_order(graph.nodes)) {
    const OnnxNode& node = graph.nodes[i];
    const auto known = [&](const std::string& name) { return is_constant(name); };
    if (kind_of(node) == NodeKind::other || !std::ranges::all_of(node.inputs, known)) continue;
    computed_.insert(node.outputs.begin(), node.outputs.end());
    const auto in_floats = [&](size_t input) { return is_float(node.inputs[input]); };
    if (std::ranges::all_of(operands(node), in_floats)) {
      computed_floats_.insert(node.outputs.begin(), node.outputs.end());
    }
  }
}

bool ConstantNames::is_constant(const std::string& name) const {
  return name.empty() || given_.contains(name) || computed_.contains(name);
}

bool ConstantNames::is_float(const std::string& name) const {
  if (computed_floats_.contains(name)) return true;
  const auto found = given_.find(name);
  return found != given_.end() && found->second->data_type == onnx_type::kFloat;
}

}  // namespace backcast
