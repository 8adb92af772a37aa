// Training on the command line: `--train` and what goes with it, and the imports of one model that
// training is assembled from.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "frontend/import.h"
#include "passes/train/training.h"

namespace CLI {
class App;
}

namespace backcast {

struct TrainingRequest {
  TrainingSpec spec;
  int64_t batch = 0;  // examples of a training step; 0: as the model says, 1 where it is symbolic
  bool promote = false;  // every float becomes f64
};

/// The options of `--train`, added to a command; the request is read once they are parsed.
class TrainingOptions {
 public:
  /// `always`: the command trains without being asked to (no option `--train`).
  void add(CLI::App& app, bool always = false);
  /// None without `--train`. CompileError for values that make no sense.
  std::optional<TrainingRequest> request() const;

 private:
  struct Words;
  std::shared_ptr<Words> words_;
};

/// The imports that training is assembled from; `run` (may be null) takes the one for inference.
TrainingModels training_models(const std::string& path, const ImportOptions& options,
                               const TrainingRequest& request, ImportedModel* run = nullptr);

struct ImportedTraining {
  ImportedModel model;  // as `run` has it
  Module module;        // the assembled training module
};

/// CompileError naming the file's node and the remedy.
ImportedTraining import_training(const std::string& path, const ImportOptions& options,
                                 const TrainingRequest& request);

}  // namespace backcast
