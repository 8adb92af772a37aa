// Which values of a graph are constants: initializers, nodes of type Constant, and what nodes
// compute of constants alone.
#pragma once

#include <map>
#include <set>
#include <string>

#include "frontend/onnx_model.h"

namespace backcast {

class ConstantNames {
 public:
  /// Of nodes only those whose kind is known (node_kinds.h) compute constants.
  explicit ConstantNames(const OnnxGraph& graph);

  /// An input that is left out is one, too.
  bool is_constant(const std::string& name) const;
  /// A constant in f32.
  bool is_float(const std::string& name) const;
  /// One that nodes compute.
  bool is_computed(const std::string& name) const { return computed_.contains(name); }

 private:
  const std::map<std::string, const OnnxTensor*> given_;
  std::set<std::string> computed_, computed_floats_;
};

}  // namespace backcast
