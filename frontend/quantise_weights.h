// Weights become integers of 8 bits and nothing else: a quarter of the file, decoded where it is
// read.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "frontend/graph_edit.h"
#include "frontend/onnx_model.h"
#include "frontend/quantise_plan.h"
#include "frontend/quantised_parts.h"

namespace backcast {

/// Constants in f32 that products and recurrent layers read as weights, and tables of rows that are
/// looked up: in the graph, in graphs within its nodes, and by way of states that loops hand on.
struct WeightPlan {
  struct Weight {
    std::string name;
    const OnnxNode* reader = nullptr;
    size_t input = 0;  // of the reader
  };
  std::vector<Weight> weights;                           // each name once
  std::set<std::string> computed;                        // by nodes of the graph, of constants
  std::map<std::string, const OnnxTensor*> inner;        // those of graphs within nodes
  std::vector<std::string> left;                         // layers that stay, each with the reason
  std::vector<std::shared_ptr<const OnnxGraph>> graphs;  // that readers may be nodes of
};

/// The plan points into the graph.
WeightPlan plan_weights(const OnnxGraph& graph, const StaysFloat& stays_float);

struct QuantisedWeights {
  GraphEdit edit;
  size_t tensors = 0;
};

/// i8 in -127..127 with a scale for each channel (of recurrent layers for each gate's unit, of
/// tables for each row). Tensors that would not be half as large stay.
QuantisedWeights quantise_weights(const OnnxModel& model, const WeightPlan& plan,
                                  const ComputedConstants& computed,
                                  const std::filesystem::path& model_dir);

}  // namespace backcast
