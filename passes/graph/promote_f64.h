// Computes a whole module in double precision: the reference that single precision is held against.
//   Ensures: every floating-point tensor (parameters, constants, what casts and counts give, the
//   state) is f64; casts that this makes idle are gone. Integers and shapes stay. A model that
//   quantises to a small float type loses that rounding.
#pragma once

#include "ir/graph/module.h"

namespace backcast {

Module promote_f64(const Module& module);

}  // namespace backcast
