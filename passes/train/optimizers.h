// Optimizers as formulas: new values of a parameter and its slots from a gradient. The definitions
// are those of torch.optim; the step count starts at 1.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ir/ops/val.h"
#include "passes/train/spec.h"

namespace backcast {

/// What an optimizer keeps beside each parameter, in the parameter's shape.
struct Slot {
  std::string name;  // "momentum"
  double initial = 0;
};
std::vector<Slot> slots_of(const OptimizerSpec& spec);

/// CompileError for numbers that make no sense (a negative rate, a schedule without a length).
void check_optimizer(const OptimizerSpec& spec);

/// One update of all parameters.
class Optimizer {
 public:
  /// `rate`: the learning rate before the schedule, a scalar; `done`: the updates before this one,
  /// an i32 scalar.
  Optimizer(const OptimizerSpec& spec, const Val& rate, const Val& done);

  /// Clipped gradients, by value and then by the norm of all together.
  std::vector<Val> clip(std::vector<Val> gradients) const;

  struct Update {
    Val parameter;
    std::vector<Val> slots;
  };
  /// `slots` in the order of slots_of().
  Update update(const Val& parameter, const Val& gradient, const std::vector<Val>& slots) const;

 private:
  Val scheduled(const Val& rate, const Val& done) const;
  Val bias_correction(double beta) const;
  Update adam(const Val& parameter, const Val& gradient, const std::vector<Val>& slots) const;
  Update rmsprop(const Val& parameter, const Val& gradient, const std::vector<Val>& slots) const;
  Update momentum(const Val& parameter, const Val& gradient, const std::vector<Val>& slots) const;

  OptimizerSpec spec_;
  Val number_;  // of this update, from 1 on, in the rate's type
  Val rate_;    // with the schedule
  // Of Adam: the rate over the first bias correction, the root of the second.
  std::optional<Val> corrected_rate_, correction_root_;
};

}  // namespace backcast
