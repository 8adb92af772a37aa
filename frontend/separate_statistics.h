// Running statistics that share an initializer with something else: exporters merge what is equal,
// and before training all biases and running means are zero.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "frontend/onnx_model.h"

namespace backcast {

/// Input `input` of node `node`, a BatchNormalization, is a running statistic whose initializer
/// something else uses, too; `name` is free for one of its own. PyTorch's exporter leaves an
/// Identity from the initializer that stays to the name that went: `output` is what that node
/// (`identity`) gives instead.
struct SharedStatistic {
  size_t node = 0, input = 0;
  std::string initializer, name;
  std::optional<size_t> identity;
  std::string output;
};

/// Of the nodes that share nothing but a statistic, the first keeps the initializer. The same graph
/// gives the same names: checkpoints hold them.
std::vector<SharedStatistic> shared_statistics(const OnnxGraph& graph);

/// Gives each of them an initializer of its own: every normalisation keeps its own statistics.
void separate_statistics(OnnxGraph& graph);

}  // namespace backcast
