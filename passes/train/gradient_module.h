// The gradient of a model's loss as a module of its own, for checking it.
#pragma once

#include <string>
#include <vector>

#include "ir/graph/module.h"
#include "passes/train/spec.h"
#include "passes/train/training.h"

namespace backcast {

struct GradientModule {
  /// `main`: the model's inputs, the target (unless the model computes its loss), then the trained
  /// parameters → (loss, gradient of each parameter).
  Module module;
  std::vector<StateVariable> parameters;  // name and value, in the order of the results
  std::string target;                     // name of that parameter of `main`; may be empty
  std::optional<InputRange> range;        // of labels
};

/// From the training form of a model: see TrainingModels. CompileError like build_training().
GradientModule build_gradient(const TrainingModels& models, const TrainingSpec& spec);

}  // namespace backcast
