// Lets a pooling keep positions for its gradient instead of its operand.
//   Requires: inlined functions.  Ensures: the same values. Positions are found where
//   the operand is made, not where the gradient asks for them; and the gradient of a rectifier in
//   front of the pooling, of which only chosen elements are not zero, asks the pooled values:
//   select(y > 0, scatter_window(g, p), 0) = scatter_window(select(y[p] > 0, g, 0), p).
#pragma once

#include "ir/graph/module.h"

namespace backcast {

Module keep_positions(const Module& module);

}  // namespace backcast
