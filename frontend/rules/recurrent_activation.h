// The activation functions of recurrent operators, which models choose by name.
#pragma once

#include <string>
#include <vector>

#include "frontend/node_context.h"

namespace backcast {

struct RecurrentActivation {
  std::string name;  // as ONNX spells it
  double alpha = 0, beta = 0;

  ValueId apply(Emitter& e, ValueId x) const;
};

/// Reads activations, activation_alpha and activation_beta: `directions` times as many as there are
/// defaults. The lists of alpha and beta hold entries for the functions that take one, in order.
std::vector<RecurrentActivation> recurrent_activations(const NodeContext& n,
                                                       const std::vector<std::string>& defaults,
                                                       int64_t directions);

}  // namespace backcast
