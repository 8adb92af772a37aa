// Products that a loop's derivative would compute again, trip by trip, stay from the loop itself: a
// scan that runs back over the values of another finds those behind contractions among its rows.
// What they are made of is then often not needed any more, so that they take its place in memory.
//   Requires: simplified functions.
//   Ensures: the same values, to the bit.
#pragma once

#include "ir/graph/module.h"

namespace backcast {

Module keep_products(const Module& module);

}  // namespace backcast
