// What is made of constants alone, before anything has folded it.
#pragma once

#include <algorithm>
#include <vector>

#include "ir/graph/evaluator.h"
#include "ir/ops/ops.h"

namespace backcast {

// `Graph` is a Builder or a Function.

template <class Graph>
bool is_made_of_constants(const Graph& graph, ValueId id) {
  const Node& node = graph.node(id);
  if (node.op == &ops::constant) return true;
  return !node.operands.empty() &&
         std::all_of(node.operands.begin(), node.operands.end(),
                     [&](ValueId operand) { return is_made_of_constants(graph, operand); });
}

/// Its value.
template <class Graph>
Value constant_value(const Module& module, const Graph& graph, ValueId id) {
  const Node& node = graph.node(id);
  std::vector<Value> operands;
  for (const ValueId operand : node.operands) {
    operands.push_back(constant_value(module, graph, operand));
  }
  return evaluate_node(module, node, operands);
}

}  // namespace backcast
