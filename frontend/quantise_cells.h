// A recurrent layer becomes a Scan of ONNX whose products are of integers.
#pragma once

#include <string>

#include "frontend/onnx_model.h"
#include "frontend/quantised_parts.h"

namespace backcast {

struct CellFormats {
  std::string data;            // what the layer reads instead: floats made of integers
  NamedFormat state;           // of the hidden state
  bool rounds_states = false;  // what it gives of all steps is of integers, too
  /// Scales for weights of that input, which may be rounded to multiples of them.
  std::function<std::vector<double>(size_t input, Channels& weights)> scales;
};

/// Inserts nodes that compute the layer `node` (see recurrent_cell.h; number `place` of the graph)
/// in front of what was inserted behind it so far, and removes it. Weights are i8 with a scale for
/// each gate's unit. Products of the data are one matrix product in front of the loop; in a step
/// the hidden state is i8, all else in floating point.
/// CompileError below opset 9, which has no such loop.
void quantise_cell(QuantisedParts& parts, const OnnxNode& node, size_t place,
                   const CellFormats& formats);

}  // namespace backcast
