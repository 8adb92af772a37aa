// Which values of a network in floating point become integers of 8 bits when it is quantised.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "frontend/onnx_model.h"

namespace backcast {

/// Whether a node's products stay in floating point.
using StaysFloat = std::function<bool(const OnnxNode&)>;

/// Products (convolutions, dense layers, matrix products) take integers. Between them integers go
/// on through pooling, elementwise functions and movements as long as they lead to another product.
/// What directly follows a product and is cheap (bias, residual, rectifier) computes with its
/// accumulators, and a function of one value, however many nodes it is written as, is rounded
/// before and after but not within. What else there is (normalisations, softmax, recurrent cells)
/// stays in floating point, and so do results of the model.
struct QuantisationPlan {
  struct Product {
    size_t node = 0;
    std::optional<size_t> weight;  // the input that is an initializer or a constant
    std::optional<size_t> norm;    // BatchNormalization that its weights can take in
  };
  struct Value {
    std::string name;
    size_t format = 0;            // scale and zero point: values that are moved share theirs
    std::vector<size_t> readers;  // nodes that read integers
  };
  std::vector<Product> products;
  std::vector<Value> values;
  size_t formats = 0;
  std::vector<std::string> left;  // products that stay in floating point, each with the reason
};

QuantisationPlan plan_quantisation(const OnnxGraph& graph, const StaysFloat& stays_float);

}  // namespace backcast
