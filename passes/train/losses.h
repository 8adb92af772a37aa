// Losses as formulas of core operators, in forms that neither overflow nor lose their gradient.
#pragma once

#include <optional>

#include "ir/graph/module.h"
#include "ir/ops/val.h"
#include "passes/train/spec.h"

namespace backcast {

/// What a loss compares the model's output with.
struct LossTarget {
  TensorType type;
  std::optional<InputRange> range;  // of labels
};

/// The target for a prediction of this type; none for LossKind::output. CompileError when the loss
/// does not fit the prediction: its rank, its number of classes, a scalar that is none.
std::optional<LossTarget> target_of(const LossSpec& spec, const TensorType& prediction);

/// log(softmax(x)) along an axis, finite whatever x is.
Val log_softmax(const Val& x, int64_t axis);
/// The axis of the classes: 1, of a vector 0.
int64_t class_axis(const TensorType& prediction);

/// The loss as a scalar of the prediction's element type. Cross-entropy wants logits, classes along
/// axis 1 (of a vector: 0); binary cross-entropy logits; KL divergence log-probabilities. `target`
/// has the type that target_of() names and is absent for LossKind::output.
Val loss_of(const LossSpec& spec, const Val& prediction, const std::optional<Val>& target);

}  // namespace backcast
