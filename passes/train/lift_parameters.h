// Turns chosen constants of a function into parameters, so that training can change them.
//   Requires: an initializer's constant has the location {name, "initializer"}.
//   Ensures: every chosen tensor that the function uses is a parameter of the tensor's name, after
//   the function's own, in the order of `tensors`. Of a tensor chosen in part, the parameter has
//   the part's shape; it is put together with the constant rest. All else is unchanged.
#pragma once

#include <string>
#include <vector>

#include "ir/graph/module.h"

namespace backcast {

/// An initializer, or its elements begin … end-1 along an axis; axis -1 is all of it.
struct LiftedTensor {
  std::string name;
  int64_t axis = -1;
  int64_t begin = 0, end = 0;
  friend bool operator==(const LiftedTensor&, const LiftedTensor&) = default;
};

/// The name of the initializer that a node holds; empty for any other node.
std::string initializer_name(const Node& node);

/// The chosen part of an initializer's value.
Literal lifted_value(const Literal& whole, const LiftedTensor& tensor);

Function lift_parameters(const Module& module, const Function& function,
                         const std::vector<LiftedTensor>& tensors);

}  // namespace backcast
