#include "passes/train/nearest_cut.h"

#include <algorithm>

#include "ir/graph/error.h"
#include "passes/graph/differentiate.h"

namespace backcast {
namespace {

bool can_train(const Module& module, const Function& loss,
               const std::vector<LiftedTensor>& tensors) {
  Module trial = module;
  trial.functions[loss.name] = lift_parameters(module, loss, tensors);
  DifferentiateOptions options;
  for (const LiftedTensor& tensor : tensors) options.wrt.push_back(tensor.name);
  try {
    static_cast<void>(differentiate(trial, loss.name, options));
  } catch (const CompileError&) {
    return false;
  }
  return true;
}

}  // namespace

int64_t nearest_cut(const Module& module, const Function& loss,
                    const std::vector<TrainableCandidate>& candidates) {
  int64_t layers = 0;
  for (const TrainableCandidate& c : candidates) layers = std::max(layers, c.layer + 1);
  // Fewer layers can only make it easier: halve the range of what is unknown.
  int64_t works = 0, fails = layers + 1;
  while (fails - works > 1) {
    const int64_t last = works + (fails - works) / 2;
    std::vector<LiftedTensor> tensors;
    for (const TrainableCandidate& c : candidates) {
      if (c.layer >= layers - last) tensors.push_back({c.name});
    }
    (can_train(module, loss, tensors) ? works : fails) = last;
  }
  return works;
}

}  // namespace backcast
