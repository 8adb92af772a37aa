// Training as a graph: from a model's inference and training forms to one module with the entries
// of a training library.
//   Requires: the three modules are imports of one file (see TrainingModels).
//   Ensures: the module's states and entries are set: `run`, `evaluate`, `train_step` and, with
//   accumulation, `apply`. Only what is trained, and running statistics, are states; all other
//   initializers stay constants. Nothing is differentiated for what is frozen.
#pragma once

#include <string>
#include <vector>

#include "ir/graph/module.h"
#include "passes/train/spec.h"

namespace backcast {

/// One model imported three times. In `training`, `main` gives the model's outputs and then the new
/// values of running statistics, as results of the initializers' names.
struct TrainingModels {
  Module inference;                     // with the batch of `run`
  Module inference_batch;               // with the batch of training
  Module training;                      // with the batch of training, as it behaves in training
  std::vector<std::string> parameters;  // floating-point initializers, in the order of the file
  std::vector<std::string> statistics;  // running statistics likewise
  /// Parameters of `main` in `training`: the key of the random generator, u32[2], and the i32
  /// number of the step that it is used in. Empty when the model needs none.
  std::string generator, step;
};

/// The initializers of a training form, whose first results are `outputs` outputs of the model,
/// that `spec` chooses among `parameters`; none where the loss depends on none. CompileError when
/// it chooses what there is not.
std::vector<std::string> chosen_parameters(const Module& training, size_t outputs,
                                           const std::vector<std::string>& parameters,
                                           const TrainingSpec& spec);

/// The states are: trained parameters, statistics, slots and accumulated gradients by parameter
/// (`<parameter>.<slot>`, `<parameter>.gradient`), then `step`, `learning_rate`, and, where they
/// are needed, `accumulated` (a slot: batches since the last update) and the generator. Statistics
/// are updated in every step. CompileError when the loss or what is trainable does not fit the
/// model.
Module build_training(const TrainingModels& models, const TrainingSpec& spec);

}  // namespace backcast
