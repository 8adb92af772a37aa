// What a training step keeps from its forward part for its backward part, layer by layer.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/graph/module.h"

namespace backcast {

struct SavedValue {
  Loc layer;       // the model's node that computes it
  std::string op;  // the core operator
  TensorType type;
  int64_t bytes = 0;  // at the largest extents of symbolic dimensions
};

/// The values of the function that nodes of the backward part read and that are neither parameters
/// nor constants, in order, each once: a value in another shape, or repeated, counts as what it is
/// made of. Works before and after other passes as long as locations are kept.
std::vector<SavedValue> saved_values(const Module& module,
                                     const std::string& function = "train_step");

}  // namespace backcast
