// Sums of quantised values, such as poolings take, become sums of integers: Σ s·(q - z) is
// s·Σ (q - z), exact in i32, where all have one constant scale.
//   Requires: one function.  Ensures: the same values to the rounding of the floating-point form,
//   which this is at least as near to the exact result as.
#pragma once

#include "ir/graph/module.h"

namespace backcast {

Module integer_sums(const Module& module);

}  // namespace backcast
