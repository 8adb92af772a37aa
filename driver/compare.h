// ONNX's rule for comparing an output with what was expected.
#pragma once

#include <string>

#include "ir/graph/literal.h"

namespace backcast {

struct Comparison {
  bool passed = true;
  double worst = 0;     // largest |actual - expected| / (atol + rtol·|expected|); > 1 fails
  std::string message;  // why not
};

/// Shapes and element types equal; |actual - expected| <= atol + rtol·|expected|, NaN equal to NaN
/// and infinities equal. Integers and bools exactly.
Comparison compare(const Literal& actual, const Literal& expected, double rtol, double atol);

}  // namespace backcast
