// How rounding errors of a layer's weights add up in its results: sums over positions and calls of
// x xᵀ, where x is what a channel's weights are multiplied by. The model itself computes them.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <string>

#include "frontend/graph_edit.h"
#include "frontend/onnx_model.h"
#include "frontend/quantise_plan.h"
#include "frontend/quantised_parts.h"

namespace backcast {

/// Makes the weights of a plan's products and recurrent layers integers of 4 bits, but for those
/// that `keeps_bytes` names and for short sums, in which there are few weights and each of them
/// counts.
void narrow_weights(QuantisationPlan& plan, const OnnxModel& model,
                    const ComputedConstants& computed, const StaysFloat& keeps_bytes,
                    const std::filesystem::path& model_dir);

struct MomentNodes {
  GraphEdit edit;                                  // of the model
  std::map<GraphEdit::Place, std::string> values;  // by weights: [calls, groups, size, size]
};

/// Nodes for weights of 4 bits, as far as they are of convolutions or rows are multiplied by them,
/// and not too many to a channel.
MomentNodes moment_nodes(const OnnxModel& model, const QuantisationPlan& plan,
                         const ComputedConstants& computed, const std::filesystem::path& model_dir);

}  // namespace backcast
