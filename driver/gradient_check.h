// Gradients of a model held against what they should be, parameter by parameter.
#pragma once

#include <string>
#include <vector>

#include "ir/graph/literal.h"

namespace backcast {

/// One parameter's gradient as computed and how far it is from the truth.
struct GradientError {
  std::string parameter;
  double norm = 0;      // of what was expected
  double distance = 0;  // of the difference (estimated from projections where only those are known)
  double allowed = 0;   // relative · max(norm, 1e-2 · norm of all gradients); of differences no
                        // less than what rounding of the loss makes of them
  bool passed() const { return distance <= allowed; }
};

struct GradientReport {
  double loss = 0;
  bool has_expected_loss = false;
  double expected_loss = 0;
  std::vector<GradientError> parameters;
  bool passed() const;
};

/// The function under test: parameter values → (loss, gradient of each).
class LossFunctionUnderTest {
 public:
  virtual ~LossFunctionUnderTest() = default;
  virtual std::vector<Literal> evaluate(const std::vector<Literal>& parameters) const = 0;
};

/// Against `folder`/loss.pb and gradient_P.pb (the tensor) or digest_P.pb (17 doubles: norm and 16
/// projections, tests/training/README.md) of every parameter. CompileError when one is missing.
GradientReport check_against_files(const LossFunctionUnderTest& function,
                                   const std::vector<std::string>& names,
                                   const std::vector<Literal>& parameters,
                                   const std::string& folder, double relative);

/// Against central differences of the loss along two random directions per parameter; where they
/// disagree, with a sixteenth of the step as well, since the function may bend within a step, and by
/// more than the loss is rounded, which short steps tell.
GradientReport check_against_differences(const LossFunctionUnderTest& function,
                                         const std::vector<std::string>& names,
                                         const std::vector<Literal>& parameters, double step,
                                         double relative);

/// splitmix64 (Steele, Lea and Flood, 2014) as a stateless function of seed and index.
uint64_t random_bits(uint64_t seed, uint64_t index);
/// In [-1, 1).
double random_uniform(uint64_t seed, uint64_t index);

}  // namespace backcast
