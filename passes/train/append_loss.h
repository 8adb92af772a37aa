// Puts a loss behind a model: the first result of the new function is the loss.
//   Requires: `function` gives tensors, the model's outputs first among them.
//   Ensures: the new function takes the parameters of `function`, then the target (unless the model
//   computes its loss itself), and gives the tuple (loss, results of `function`…). Where the model
//   ends in Softmax or Sigmoid, losses of logits take what these are applied to; KL divergence
//   takes the logarithm of a Softmax at the end.
#pragma once

#include <string>
#include <vector>

#include "ir/graph/module.h"
#include "passes/train/spec.h"

namespace backcast {

struct LossFunction {
  Function function;
  std::string loss;    // name of the result
  std::string target;  // name of the parameter; empty when there is none
  std::optional<InputRange> range;
};

/// `outputs`: how many of the results, from the first on, are outputs of the model. `taken` are
/// names that the loss and the target must not have. CompileError when the loss does not fit.
LossFunction append_loss(const Module& module, const Function& function, size_t outputs,
                         const LossSpec& spec, std::vector<std::string> taken);

}  // namespace backcast
