// Which operators make each element of their result of the same elements of their operands.
#pragma once

#include "ir/graph/op.h"

namespace backcast::ops {

bool is_pointwise(const OpDef& op);

}  // namespace backcast::ops
