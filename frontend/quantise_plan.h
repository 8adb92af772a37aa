// Which values of a network in floating point become integers of 8 bits when it is quantised.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "frontend/graph_edit.h"
#include "frontend/onnx_model.h"

namespace backcast {

/// Whether a node's products stay in floating point.
using StaysFloat = std::function<bool(const OnnxNode&)>;

/// Products (convolutions, dense layers, matrix products) take integers. Between them integers go
/// on through pooling, elementwise functions and movements as long as they lead to another product.
/// What directly follows a product and is cheap (bias, residual, rectifier) computes with its
/// accumulators, and a function of one value, however many nodes it is written as, is rounded
/// before and after but not within. Products of recurrent cells take integers as well, and the
/// hidden state is rounded in every step; LSTM's cell state is not. What else there is
/// (normalisations, softmax) stays in floating point, and so do results of the model.
struct QuantisationPlan {
  struct Product {
    size_t node = 0;
    std::optional<size_t> weight;  // the input that is a constant
    std::optional<size_t> norm;    // BatchNormalization that its weights can take in
  };
  struct Cell {
    size_t node = 0;
    size_t format = 0;     // of the hidden state
    std::string states;    // the output of all hidden states, which the file may leave out
    std::string initial;   // the first one; may be empty
    bool is_named = true;  // whether the file has that output
  };
  struct Value {
    std::string name;
    size_t format = 0;            // scale and zero point: values that are moved share theirs
    std::vector<size_t> readers;  // nodes that read integers
  };
  std::vector<Product> products;
  std::vector<Cell> cells;
  std::vector<Value> values;
  size_t formats = 0;
  std::set<std::string> computed;     // weights and biases that nodes compute of constants
  std::vector<std::string> left;      // products that stay in floating point, each with the reason
  std::set<GraphEdit::Place> narrow;  // weights of 4 bits (narrow_weights)

  struct Observed {
    std::string name;
    size_t format = 0;
  };
  /// What decides about the formats, each name once.
  std::vector<Observed> observed() const;
};

QuantisationPlan plan_quantisation(const OnnxGraph& graph, const StaysFloat& stays_float);

}  // namespace backcast
