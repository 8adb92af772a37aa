// Quantised layers that learn: their weights become floating-point numbers, and what follows them
// is no longer rounded, so that it has a derivative.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "frontend/onnx_model.h"
#include "ir/graph/literal.h"

namespace backcast {

/// Integer initializers that one DequantizeLinear with a constant scale reads and nothing else
/// does, in the file's order.
std::vector<std::string> quantised_weights(const OnnxGraph& graph);

/// An edit of a quantised graph. Names of values and initializers stay.
struct Unquantised {
  /// A QuantizeLinear or DequantizeLinear (its place among the nodes) that hands its first input
  /// on. `rectifies`: zero is the smallest number of the format, so that it was a rectifier as
  /// well.
  struct PlainNode {
    size_t node = 0;
    bool rectifies = false;
    const char* op_type() const { return rectifies ? "Relu" : "Identity"; }
  };
  std::map<std::string, Literal> weights;  // what DequantizeLinear made of the initializers
  std::vector<PlainNode> nodes;
  std::set<std::string> values;  // integers before, floating-point numbers now
  size_t kept = 0;               // of the nodes that quantise behind weights: those that stay
};

/// The edit with which the initializers `names` learn: of `quantised_weights`, or in floating point
/// in the file. A QuantizeLinear behind them is left out where its result goes to DequantizeLinear
/// of the same scale, as it is or moved about, or is an output of the model; others stay, and end
/// learning. CompileError when data cannot be read.
Unquantised unquantise(const OnnxGraph& graph, const std::set<std::string>& names,
                       const std::filesystem::path& model_dir);

void apply(const Unquantised& edit, OnnxGraph& graph);

}  // namespace backcast
