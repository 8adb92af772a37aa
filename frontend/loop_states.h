// States of loops that every trip hands on as they are: converters carry weights, lengths and
// sequences through their loops, where they would be copied and their values not be known.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "frontend/onnx_model.h"

namespace backcast {

struct LoopWithoutUnchanged {
  OnnxNode node;  // whose body takes those states from around it
  /// For each output of the loop as it was: the value it is, or nothing where it is the next one of
  /// `node`.
  std::vector<std::optional<std::string>> outputs;
};

/// Of a Loop or Scan. Nothing when every state changes.
std::optional<LoopWithoutUnchanged> without_unchanged_states(const OnnxNode& node);

}  // namespace backcast
