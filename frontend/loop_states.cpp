#include "frontend/loop_states.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <memory>
#include <set>

#include "frontend/graph_importer.h"
#include "frontend/graph_names.h"

namespace backcast {
namespace {

/// What a name stands for by way of Identity nodes.
std::string source_of(const std::map<std::string, std::string>& copies, std::string name) {
  for (auto found = copies.find(name); found != copies.end(); found = copies.find(name)) {
    name = found->second;
  }
  return name;
}

std::map<std::string, std::string> copies_in(const OnnxGraph& graph) {
  std::map<std::string, std::string> copies;
  for (const OnnxNode& node : graph.nodes) {
    if (node.domain.empty() && node.op_type == "Identity" && node.inputs.size() == 1 &&
        node.outputs.size() == 1 && node.inputs[0] != node.outputs[0]) {
      copies.emplace(node.outputs[0], node.inputs[0]);
    }
  }
  return copies;
}

template <class T>
void erase_at(std::vector<T>& list, size_t i) {
  if (i < list.size()) list.erase(list.begin() + static_cast<std::ptrdiff_t>(i));
}

/// States begin at `first_input` of the node and of its body, and at `first_output` of the body's
/// outputs.
std::optional<LoopWithoutUnchanged> without_unchanged_states(const OnnxNode& node, size_t states,
                                                             size_t first_input,
                                                             size_t first_output) {
  const OnnxAttribute* held = find_attribute(node, "body");
  if (!held || !held->g) return std::nullopt;
  const OnnxGraph& body = *held->g;
  const bool complete = node.inputs.size() >= first_input + states &&
                        body.inputs.size() >= first_input + states &&
                        body.outputs.size() >= first_output + states;
  if (!complete) return std::nullopt;
  const std::map<std::string, std::string> copies = copies_in(body);
  const std::set<std::string> defined = defined_names(body);
  LoopWithoutUnchanged result{node, std::vector<std::optional<std::string>>(node.outputs.size())};
  const auto changed = std::make_shared<OnnxGraph>(body);
  // From the last one: places in front of it stay.
  for (size_t state = states; state-- > 0;) {
    const std::string& outside = node.inputs[first_input + state];
    const std::string& inside = body.inputs[first_input + state].name;
    // The body's own value of that name would be taken for the one outside.
    if (outside.empty() || defined.contains(outside)) continue;
    if (source_of(copies, body.outputs[first_output + state].name) != inside) continue;
    erase_at(result.node.inputs, first_input + state);
    erase_at(changed->inputs, first_input + state);
    erase_at(changed->outputs, first_output + state);
    erase_at(result.node.outputs, state);
    if (state < result.outputs.size()) result.outputs[state] = outside;
    changed->nodes.insert(changed->nodes.begin(),
                          {node.name + "/" + inside, "Identity", "", {outside}, {inside}, {}});
  }
  if (changed->outputs.size() == body.outputs.size()) return std::nullopt;
  result.node.attributes[static_cast<size_t>(held - node.attributes.data())].g = changed;
  return result;
}

}  // namespace

/// Number of trips and condition come before a Loop's states, their rows behind a Scan's.
std::optional<LoopWithoutUnchanged> without_unchanged_states(const OnnxNode& node) {
  const size_t inputs = node.inputs.size();
  if (node.op_type == "Loop") {
    return inputs > 2 ? without_unchanged_states(node, inputs - 2, 2, 1) : std::nullopt;
  }
  const OnnxAttribute* rows = find_attribute(node, "num_scan_inputs");
  if (!rows || rows->i < 1 || rows->i >= static_cast<int64_t>(inputs)) return std::nullopt;
  return without_unchanged_states(node, inputs - static_cast<size_t>(rows->i), 0, 0);
}

}  // namespace backcast
