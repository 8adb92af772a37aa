#include "frontend/separate_statistics.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "frontend/graph_names.h"

namespace backcast {
namespace {

constexpr size_t kMean = 3, kVariance = 4;  // inputs of BatchNormalization

bool is_statistic(const OnnxNode& node, size_t input) {
  return node.domain.empty() && node.op_type == "BatchNormalization" &&
         (input == kMean || input == kVariance);
}

/// Finds initializers behind nodes that change nothing.
class Sources {
 public:
  explicit Sources(const OnnxGraph& graph) : graph_(graph) {
    for (const OnnxTensor& tensor : graph.initializers) initializers_.insert(tensor.name);
    for (size_t i = 0; i < graph.nodes.size(); ++i) {
      const OnnxNode& node = graph.nodes[i];
      if (is_identity(node)) identities_.emplace(node.outputs[0], i);
    }
  }

  static bool is_identity(const OnnxNode& node) {
    return node.domain.empty() && node.op_type == "Identity" && node.inputs.size() == 1 &&
           node.outputs.size() == 1;
  }

  std::optional<size_t> identity(const std::string& name) const {
    const auto found = identities_.find(name);
    return found == identities_.end() ? std::nullopt : std::optional(found->second);
  }

  std::string source(std::string name) const {
    // No more steps than nodes: a file may hold a cycle.
    for (size_t steps = 0; steps < graph_.nodes.size() && !is_initializer(name); ++steps) {
      const std::optional<size_t> node = identity(name);
      if (!node) break;
      name = graph_.nodes[*node].inputs[0];
    }
    return name;
  }

  bool is_initializer(const std::string& name) const { return initializers_.contains(name); }

  /// Initializers that are used as anything but a running statistic of the graph's own nodes.
  std::set<std::string> other_operands() const {
    std::set<std::string> names;
    for (const OnnxValueInfo& output : graph_.outputs) names.insert(source(output.name));
    for (const OnnxNode& node : graph_.nodes) {
      if (is_identity(node)) continue;  // those that use its output count
      for (size_t i = 0; i < node.inputs.size(); ++i) {
        if (!is_statistic(node, i)) names.insert(source(node.inputs[i]));
      }
      for (const std::string& name : names_of_bodies(node)) names.insert(source(name));
    }
    return names;
  }

 private:
  const OnnxGraph& graph_;
  std::set<std::string> initializers_;
  std::map<std::string, size_t> identities_;
};

}  // namespace

std::vector<SharedStatistic> shared_statistics(const OnnxGraph& graph) {
  const Sources sources(graph);
  const std::map<std::string, std::set<size_t>> users = users_of(graph);
  std::set<std::string> taken = defined_names(graph), kept = sources.other_operands();
  for (const auto& [name, nodes] : users) taken.insert(name);
  std::set<size_t> used;  // identities whose names are taken over
  std::vector<SharedStatistic> shared;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const OnnxNode& node = graph.nodes[i];
    for (size_t input = 0; input < node.inputs.size(); ++input) {
      if (!is_statistic(node, input)) continue;
      const std::string& name = node.inputs[input];
      SharedStatistic statistic = {i, input, sources.source(name), name, sources.identity(name),
                                   ""};
      if (!sources.is_initializer(statistic.initializer)) continue;
      if (kept.insert(statistic.initializer).second) continue;
      if (statistic.identity && users.at(name).size() == 1 &&
          used.insert(*statistic.identity).second) {
        statistic.output = free_name(name, taken);
      } else {
        const std::string owner =
            node.name.empty() ? fmt::format("{}_{}", node.op_type, i) : node.name;
        statistic.name =
            free_name(owner + (input == kMean ? ".running_mean" : ".running_var"), taken);
        statistic.identity.reset();
      }
      shared.push_back(std::move(statistic));
    }
  }
  return shared;
}

void separate_statistics(OnnxGraph& graph) {
  for (const SharedStatistic& statistic : shared_statistics(graph)) {
    const auto source = std::find_if(
        graph.initializers.begin(), graph.initializers.end(),
        [&](const OnnxTensor& tensor) { return tensor.name == statistic.initializer; });
    OnnxTensor own = *source;
    own.name = statistic.name;
    graph.initializers.push_back(std::move(own));
    graph.nodes[statistic.node].inputs[statistic.input] = statistic.name;
    if (statistic.identity) graph.nodes[*statistic.identity].outputs[0] = statistic.output;
  }
}

}  // namespace backcast
