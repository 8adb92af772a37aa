// Which values something reads that jumps: rounding, conversion to integers, a test for equality.
// There the last bit of a value may decide, so that floor(x / 49) is not floor(x * (1 / 49)).
#pragma once

#include <vector>

#include "ir/graph/module.h"

namespace backcast {

/// One flag per node: whether its value reaches such an operator, directly or through sums,
/// products, bounds and what moves elements.
std::vector<char> steps_behind(const Function& function);

}  // namespace backcast
