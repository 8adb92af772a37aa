// The functions of a training library that change the state: train_step and apply.
#pragma once

#include <string>
#include <vector>

#include "ir/graph/module.h"
#include "passes/train/spec.h"

namespace backcast {

/// The optimizer's share of the state of one trained parameter.
struct TrainedParameter {
  std::string name;
  TensorType type;
  std::vector<std::string> slots;  // names of states, in the order of slots_of()
  std::string gradient;            // name of the state; empty without accumulation
};

/// Names of states and what they belong to.
struct TrainingNames {
  std::vector<TrainedParameter> parameters;
  std::string step, rate;
  std::string accumulated;  // batches since the last update; empty without accumulation
  std::string model_step;   // parameter of the adjoint that wants the step; may be empty
};

/// From the adjoint, which gives ((results…), (gradient of each parameter)), whose results bear
/// `result_names`: a function of that gives results and the new values of parameters, slots and
/// step; with accumulation, of the gradients instead.
Function make_train_step(const Module& module, const Function& adjoint,
                         const std::vector<std::string>& result_names, const TrainingNames& names,
                         const TrainingSpec& spec);

/// Updates from the mean of the accumulated gradients, and clears them.
Function make_apply(const Module& module, const TrainingNames& names, const TrainingSpec& spec);

}  // namespace backcast
