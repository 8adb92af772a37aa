// Activation functions that models choose by name: of recurrent operators, and of fused ones.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "frontend/node_context.h"

namespace backcast {

struct NamedActivation {
  std::string name;  // as ONNX spells it
  double alpha = 0, beta = 0;

  ValueId apply(Emitter& e, ValueId x) const;
};

/// The function called so, whatever its letters' case; parameters that are not given are ONNX's.
NamedActivation named_activation(const NodeContext& n, const std::string& name,
                                 std::optional<double> alpha, std::optional<double> beta);

/// Reads activations, activation_alpha and activation_beta: `directions` times as many as there are
/// defaults. The lists of alpha and beta hold entries for the functions that take one, in order.
std::vector<NamedActivation> recurrent_activations(const NodeContext& n,
                                                   const std::vector<std::string>& defaults,
                                                   int64_t directions);

}  // namespace backcast
