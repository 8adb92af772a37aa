// What a loop finds row by row without what it carries: rows that it looks up by counting become
// rows that it scans, products of rows one product in front of the loop, and counters that nothing
// reads any more are not carried.
//   Requires: simplified functions.
//   Ensures: the same values but for the rounding of sums.
#pragma once

#include "ir/graph/module.h"

namespace backcast {

/// `products`: those, too, whose results then exist for all trips at once.
Module lift_rows(const Module& module, bool products);

}  // namespace backcast
