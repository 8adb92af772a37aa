// ONNX's rule for comparing an output with what was expected.
#pragma once

#include <string>
#include <vector>

#include "ir/graph/literal.h"

namespace backcast {

/// ONNX's own for its test data, unless said otherwise.
struct Tolerance {
  double relative = 1e-3, absolute = 1e-7;
  /// By how much integers of 8 bits may differ: the last step of a quantised result depends on how
  /// what led to it was rounded.
  int64_t steps = 0;
};

struct ComparedOutput {
  bool passed = true;
  double worst = 0;     // largest error in units of what is allowed; > 1 fails
  std::string message;  // why not
};

/// Shapes and element types equal; |actual - expected| <= absolute + relative·|expected|, NaN equal
/// to NaN and infinities equal. Integers and bools exactly, but for `steps`.
ComparedOutput compare(const Literal& actual, const Literal& expected,
                       const Tolerance& tolerance = {});

/// The same for all outputs of a run: as many as expected, each as it should be. `message` names
/// the first output that is not.
ComparedOutput compare(const std::vector<Literal>& actual, const std::vector<Literal>& expected,
                       const Tolerance& tolerance = {});

}  // namespace backcast
