// Constant folding through the evaluator, algebraic rules, common subexpressions, dead code.
//   Requires: verified functions.  Ensures: the same results with no more nodes; parameters stay.
#pragma once

#include "ir/graph/module.h"

namespace backcast {

Module simplify(const Module& module);

}  // namespace backcast
