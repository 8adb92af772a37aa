// A training library that a test drives: compiled in process, or linked into an image for a device.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "driver/compiler.h"
#include "driver/device.h"

namespace backcast::training {

struct Call {
  std::string function;  // "init", "train_step", "get_parameters", …
  std::vector<Literal> inputs;
};

/// Carries out calls in order on one state and answers each with its outputs. InternalError when a
/// call fails.
class Learner {
 public:
  virtual ~Learner() = default;
  virtual std::vector<std::vector<Literal>> run(const std::vector<Call>& calls) = 0;
};

/// Through LLVM in this process.
std::unique_ptr<Learner> make_jit_learner(const CompiledModel& model);
/// The emitted library on the model's target, natively or under QEMU. The replies' findings
/// (overruns, more stack than promised) are errors.
std::unique_ptr<Learner> make_device_learner(const CompiledModel& model, Emit emit);

}  // namespace backcast::training
