// Folds scales and shifts by constants into contractions: (conv(x, w) + b) * s + t becomes
// conv(x, w·s) + (b·s + t). This is what batch normalisation is at inference. A scale of an
// operand's rows goes behind the product: softmax(x)·v divides what is smaller.
//   Requires: simplified.  Ensures: the same values to rounding; weights stay constants.
#pragma once

#include "ir/graph/module.h"

namespace backcast {

Module fold_scale(const Module& module);

}  // namespace backcast
