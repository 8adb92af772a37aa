// Which tensors of a model training may change.
#pragma once

#include <string>
#include <vector>

#include "ir/graph/module.h"
#include "passes/train/lift_parameters.h"
#include "passes/train/spec.h"

namespace backcast {

/// An initializer that the loss depends on differentiably.
struct TrainableCandidate {
  std::string name;
  TensorType type;
  Loc user;              // the model's node that takes it first
  int64_t position = 0;  // of that node
  bool is_bias = false;  // a vector that is added
  bool is_norm = false;  // scale or shift of a normalisation
  /// Numbered in the order of the model; parameters of one layer share it. -1: of none.
  int64_t layer = 0;

  /// Without axes: more often a number of a formula (a bound, the half of GELU) than a weight. It
  /// learns when it is named, and makes no layer.
  bool is_number() const { return type.rank() == 0; }
};

/// The floating-point initializers among `names`, in their order, that result number `target` of
/// `function` depends on.
std::vector<TrainableCandidate> trainable_candidates(const Function& function, int64_t target,
                                                     const std::vector<std::string>& names);

/// The tensors that the expressions choose, in the order of the candidates. CompileError for an
/// expression that matches nothing (listing the candidates), a range that does not fit, and a
/// tensor of which two ranges are chosen.
std::vector<LiftedTensor> select_trainable(const std::vector<TrainableCandidate>& candidates,
                                           const TrainableSpec& spec);

/// Splits at commas outside of brackets and at ends of lines; `#` starts a comment.
std::vector<std::string> parse_trainable(const std::string& text);

}  // namespace backcast
