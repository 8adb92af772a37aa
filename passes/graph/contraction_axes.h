// Where the dimensions of a contraction's operands are in its result.
#pragma once

#include <map>

#include "ir/graph/builder.h"

namespace backcast {

bool is_contraction(const Node& node);

/// Dimensions of operand `side` (of rank `rank`) that the result has: operand's → result's. What is
/// contracted, and spatial dimensions of convolutions, are not in it. Empty for other operators.
std::map<int64_t, int64_t> axes_in_result(const Node& contraction, size_t side, int64_t rank);

}  // namespace backcast
