// ONNX's rule for comparing an output with what was expected.
#pragma once

#include <string>
#include <vector>

#include "ir/graph/literal.h"

namespace backcast {

/// ONNX's own tolerances for its test data.
inline constexpr double kOnnxRelative = 1e-3, kOnnxAbsolute = 1e-7;

struct ComparedOutput {
  bool passed = true;
  double worst = 0;     // largest |actual - expected| / (atol + rtol·|expected|); > 1 fails
  std::string message;  // why not
};

/// Shapes and element types equal; |actual - expected| <= atol + rtol·|expected|, NaN equal to NaN
/// and infinities equal. Integers and bools exactly.
ComparedOutput compare(const Literal& actual, const Literal& expected, double rtol = kOnnxRelative,
                       double atol = kOnnxAbsolute);

/// The same for all outputs of a run: as many as expected, each as it should be. `message` names
/// the first output that is not.
ComparedOutput compare(const std::vector<Literal>& actual, const std::vector<Literal>& expected,
                       double rtol = kOnnxRelative, double atol = kOnnxAbsolute);

}  // namespace backcast
