// A change of a model file's graph, which leaves all else in the file as it is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "frontend/onnx_model.h"
#include "ir/graph/literal.h"

namespace backcast {

/// Nodes are named by their places before the edit. Nodes and initializers that nobody reads any
/// more are left out.
struct GraphEdit {
  using Place = std::pair<size_t, size_t>;  // node, input or output
  struct Insertion {
    std::optional<size_t> behind;  // none: in front of all nodes
    OnnxNode node;                 // attributes: integers, strings, graphs
  };
  std::map<std::string, Literal> initializers;  // new ones
  std::vector<Insertion> insertions;            // in order
  std::map<Place, std::string> inputs;          // an input more than the node has joins it
  std::map<Place, std::string> outputs;
  std::set<size_t> removed;               // nodes
  std::set<std::string> redefined;        // constants, here or in graphs within nodes, that go
  std::map<std::string, int64_t> opsets;  // of domains that the model may not have yet
  std::map<std::string, int64_t> types;   // data types of the graph's inputs and outputs
};

}  // namespace backcast
