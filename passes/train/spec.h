// What the user says about training, as plain data: which loss, which optimizer, what is trained.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ir/graph/attributes.h"

namespace backcast {

enum class LossKind { cross_entropy, binary_cross_entropy, mse, l1, huber, kl_divergence, output };
BACKCAST_ENUM_NAMES(LossKind, "cross-entropy", "binary-cross-entropy", "mse", "l1", "huber",
                    "kl-divergence", "output");

/// How the losses of the elements become one number; batchmean divides the sum by the examples.
enum class LossReduction { mean, sum, batchmean };
BACKCAST_ENUM_NAMES(LossReduction, "mean", "sum", "batchmean");

/// Definitions are PyTorch's (torch.nn.functional).
struct LossSpec {
  LossKind kind = LossKind::cross_entropy;
  LossReduction reduction = LossReduction::mean;
  std::string output;  // of the model, that the loss looks at; empty: the first
  // Cross-entropy:
  bool probabilities = false;           // the target holds probabilities instead of labels
  std::vector<double> class_weights;    // one per class, or none
  std::optional<int64_t> ignore_index;  // a label that counts nothing
  double label_smoothing = 0;           // in [0, 1]
  double delta = 1;                     // Huber: where the parabola ends
};

enum class OptimizerKind { sgd, momentum, nesterov, adam, adamw, rmsprop, adagrad };
BACKCAST_ENUM_NAMES(OptimizerKind, "sgd", "momentum", "nesterov", "adam", "adamw", "rmsprop",
                    "adagrad");

enum class ScheduleKind { constant, step, cosine };
BACKCAST_ENUM_NAMES(ScheduleKind, "constant", "step", "cosine");

/// A factor of the learning rate as a function of the updates done so far, n = 0, 1, …:
/// constant 1; step factor^⌊n / every⌋; cosine from 1 down to `least` after `total` updates;
/// each times min(1, (n + 1) / warmup).
struct Schedule {
  ScheduleKind kind = ScheduleKind::constant;
  int64_t warmup = 0;
  int64_t every = 0;
  double factor = 0.1;
  int64_t total = 0;
  double least = 0;
};

/// Definitions are PyTorch's (torch.optim). What is absent has PyTorch's default.
struct OptimizerSpec {
  OptimizerKind kind = OptimizerKind::sgd;
  double rate = 0.01;
  std::optional<double> momentum;         // momentum, nesterov: 0.9; rmsprop: 0
  double beta1 = 0.9, beta2 = 0.999;      // adam, adamw
  std::optional<double> epsilon;          // adam, adamw, rmsprop: 1e-8; adagrad: 1e-10
  double alpha = 0.99;                    // rmsprop
  bool centered = false;                  // rmsprop
  double rate_decay = 0;                  // adagrad
  double initial_accumulator = 0;         // adagrad
  double weight_decay = 0;                // L2: added to the gradient times the parameter
  std::optional<double> decoupled_decay;  // parameter *= 1 - rate * decay; adamw: 0.01
  std::optional<double> clip_value;       // each element of a gradient is put into [-value, value]
  std::optional<double> clip_norm;        // then all gradients together are shortened to this norm
  Schedule schedule;
};

/// Expressions: `all`, `bias`, `norm`, `last:N`, a tensor's name, a regular expression that is
/// found in names, or `name[axis,begin:end]`. A tensor that any of them names is trained; none:
/// all. Words leave out tensors without axes.
struct TrainableSpec {
  std::vector<std::string> expressions;
};

struct TrainingSpec {
  LossSpec loss;
  OptimizerSpec optimizer;
  TrainableSpec trainable;
  int64_t accumulate = 0;  // batches per update, done by `apply`; 0: every step updates
};

}  // namespace backcast
