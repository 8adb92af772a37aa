#include "frontend/graph_names.h"

#include <algorithm>
#include <functional>
#include <queue>

namespace backcast {
namespace {

/// False when graphs are nested too deeply.
bool add_free_names(const OnnxGraph& graph, int depth, std::vector<std::string>& names) {
  if (depth > kMaxGraphDepth) return false;
  const std::set<std::string> defined = defined_names(graph);
  const auto use = [&](const std::string& name) {
    if (name.empty() || defined.contains(name)) return;
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  };
  for (const OnnxNode& node : graph.nodes) {
    for (const std::string& name : node.inputs) use(name);
    for (const OnnxAttribute& attribute : node.attributes) {
      if (!attribute.g) continue;
      std::vector<std::string> inner;
      if (!add_free_names(*attribute.g, depth + 1, inner)) return false;
      for (const std::string& name : inner) use(name);
    }
  }
  for (const OnnxValueInfo& output : graph.outputs) use(output.name);
  return true;
}

void add_used_names(const std::vector<OnnxNode>& nodes, int depth, std::set<std::string>& names) {
  if (depth > kMaxGraphDepth) return;
  for (const OnnxNode& node : nodes) {
    names.insert(node.inputs.begin(), node.inputs.end());
    for (const OnnxAttribute& attribute : node.attributes) {
      if (!attribute.g) continue;
      for (const OnnxValueInfo& output : attribute.g->outputs) names.insert(output.name);
      add_used_names(attribute.g->nodes, depth + 1, names);
    }
  }
}

/// The nodes that use each name, themselves or in graphs inside of them.
std::map<std::string, std::set<size_t>> users_of(const std::vector<OnnxNode>& nodes) {
  std::map<std::string, std::set<size_t>> users;
  for (size_t i = 0; i < nodes.size(); ++i) {
    for (const std::string& name : nodes[i].inputs) users[name].insert(i);
    for (const std::string& name : names_of_bodies(nodes[i])) users[name].insert(i);
  }
  return users;
}

}  // namespace

std::set<std::string> used_names(const OnnxModel& model) {
  std::set<std::string> names;
  for (const OnnxValueInfo& output : model.graph.outputs) names.insert(output.name);
  add_used_names(model.graph.nodes, 0, names);
  for (const OnnxFunction& function : model.functions) {
    names.insert(function.outputs.begin(), function.outputs.end());
    add_used_names(function.nodes, 0, names);
  }
  names.erase("");  // what is left out
  return names;
}

std::set<std::string> defined_names(const OnnxGraph& graph) {
  std::set<std::string> names;
  for (const OnnxValueInfo& input : graph.inputs) names.insert(input.name);
  for (const OnnxTensor& tensor : graph.initializers) names.insert(tensor.name);
  for (const OnnxNode& node : graph.nodes) names.insert(node.outputs.begin(), node.outputs.end());
  return names;
}

std::map<std::string, const OnnxTensor*> constants_of(const OnnxGraph& graph) {
  std::map<std::string, const OnnxTensor*> constants;
  for (const OnnxTensor& tensor : graph.initializers) constants[tensor.name] = &tensor;
  for (const OnnxNode& node : graph.nodes) {
    if (node.op_type != "Constant" || node.outputs.size() != 1) continue;
    for (const OnnxAttribute& attribute : node.attributes) {
      if (attribute.t) constants.emplace(node.outputs[0], attribute.t.get());
    }
  }
  return constants;
}

std::optional<std::vector<std::string>> free_names(const OnnxGraph& graph) {
  std::vector<std::string> names;
  return add_free_names(graph, 0, names) ? std::optional(std::move(names)) : std::nullopt;
}

std::vector<std::string> names_of_bodies(const OnnxNode& node) {
  std::vector<std::string> names;
  for (const OnnxAttribute& attribute : node.attributes) {
    if (!attribute.g) continue;
    if (const std::optional<std::vector<std::string>> inner = free_names(*attribute.g)) {
      names.insert(names.end(), inner->begin(), inner->end());
    }
  }
  return names;
}

std::vector<size_t> topological_order(const std::vector<OnnxNode>& nodes) {
  std::map<std::string, std::set<size_t>> users = users_of(nodes);
  users.erase("");  // what is left out
  const auto for_each_user = [&](const OnnxNode& node, const std::function<void(size_t)>& f) {
    for (const std::string& output : node.outputs) {
      const auto found = users.find(output);
      if (found != users.end()) std::ranges::for_each(found->second, f);
    }
  };
  std::vector<size_t> missing(nodes.size(), 0);  // names that have to come first
  for (const OnnxNode& node : nodes) for_each_user(node, [&](size_t user) { ++missing[user]; });
  std::priority_queue<size_t, std::vector<size_t>, std::greater<>> ready;
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (missing[i] == 0) ready.push(i);
  }
  std::vector<size_t> order;
  while (!ready.empty()) {
    order.push_back(ready.top());
    ready.pop();
    for_each_user(nodes[order.back()], [&](size_t user) {
      if (--missing[user] == 0) ready.push(user);
    });
  }
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (missing[i] > 0) order.push_back(i);
  }
  return order;
}

std::map<std::string, std::set<size_t>> users_of(const OnnxGraph& graph) {
  std::map<std::string, std::set<size_t>> users = users_of(graph.nodes);
  for (const OnnxValueInfo& output : graph.outputs) users[output.name].insert(graph.nodes.size());
  return users;
}

std::string free_name(std::string name, std::set<std::string>& taken) {
  while (!taken.insert(name).second) name += "_";
  return name;
}

}  // namespace backcast
