// The networks of the references: where they are, their losses and their batches.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "driver/training.h"
#include "ir/graph/literal.h"

namespace backcast::training {

struct Network {
  std::string name;
  std::vector<int64_t> input;  // shape of a batch
  int64_t classes = 0;         // 0: the target is the input
  bool batch_norm = false;
};

/// CompileError for a name that is none.
const Network& network(const std::string& name);

/// Images and labels of one split of examples/digits.
struct Digits {
  std::vector<std::vector<double>> images;
  std::vector<int64_t> labels;
};
Digits read_digits(const std::filesystem::path& file);

/// Inputs and target of batch `step` of a reference trajectory, in the element type of training.
std::vector<Literal> batch(const Network& network, int64_t step, ElementType element,
                           const Digits& digits);

/// `--loss … --optimizer …` of a reference.
TrainingRequest request_for(const Network& network, const std::string& optimizer, bool promote);

}  // namespace backcast::training
