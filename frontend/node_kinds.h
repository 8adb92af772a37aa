// What quantising has to know of operators: how a node's result depends on what it reads.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "frontend/onnx_model.h"

namespace backcast {

/// Whether it only moves elements of its first input, or chooses among them by their order.
bool is_movement(const OnnxNode& node);

enum class NodeKind {
  product,        // sums of products of its first two inputs
  movement,       // elements of its first input
  concatenation,  // elements of all its inputs
  elementwise,    // of all its inputs, with numpy broadcasting
  recurrent,      // cells along sequences of its first input
  mean,           // of windows or axes of its first input, or between neighbours there
  other
};
NodeKind kind_of(const OnnxNode& node);

/// Whether an elementwise node is worth computing on accumulators: a few additions,
/// multiplications and comparisons.
bool is_cheap(const OnnxNode& node);

/// Whether the result has far fewer elements than what it reads.
bool shrinks(const OnnxNode& node);

/// The inputs that weights may be: factors of products, a recurrent layer's, a table.
std::vector<size_t> weight_inputs(const OnnxNode& node);

/// The axis of weights of `rank` axes along which the node's results are channels (of a table,
/// rows); none where a result's channel is no index of the weights.
std::optional<size_t> channel_axis(const OnnxNode& node, size_t input, size_t rank);

/// The inputs (by their place) whose elements a node of a known kind computes with; others are
/// shapes, places and bounds.
std::vector<size_t> operands(const OnnxNode& node);

}  // namespace backcast
