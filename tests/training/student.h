// A training library in this process, called as its header says, and states of it: what tests of
// equalities need, down to the status of each call.
#pragma once

#include <string>
#include <vector>

#include "driver/compiler.h"
#include "tests/backend_state/built_library.h"
#include "tests/training/networks.h"

namespace backcast::training {

/// `form`: "jit", "archive", "gcc" or "clang". `scheduled_for`: a target whose schedules and order
/// of the state the library has; this machine's otherwise.
struct TrainingLibrary {
  TrainingLibrary(const std::string& model_path, const TrainingRequest& request,
                  const std::string& form, const PassOptions& passes = {},
                  const std::string& scheduled_for = "");

  CompiledModel model;
  state_test::BuiltLibrary library;
};

/// The reference network of this name (tests/training/models).
std::string reference_model(const std::string& name);
const Digits& training_digits();
const Digits& test_digits();

/// One state of a library. Calls are InternalErrors when they fail unless they answer a status.
class Student {
 public:
  explicit Student(const TrainingLibrary& library, uint64_t seed = 1);

  double step(const std::vector<Literal>& batch);  // the loss
  int32_t try_step(const std::vector<Literal>& batch);
  void apply();
  std::vector<Literal> run(const std::vector<Literal>& inputs);
  Literal parameters() const;
  void set_parameters(const Literal& flat);
  std::string save() const;
  int32_t load(const std::string& checkpoint);

  unsigned char* state() { return state_.data(); }

 private:
  std::vector<Literal> call(const std::string& entry, const std::vector<Literal>& inputs);

  const TrainingLibrary& library_;
  state_test::StateBlock state_;
};

/// Norm of the difference over the norm of `b`.
double relative_distance(const Literal& a, const Literal& b);

}  // namespace backcast::training
