// Rounding to small integers between products of integers, in few operations:
//   - x / s with a constant s becomes constants of x where x is a sum of scaled values (and may be
//     clipped): (a·c + b) / s is a·(c/s) + b/s; rounded, i·s / s of an integer i is i;
//   - cast(round_even(y) + z), saturating, less z is the nearest integer to y, clipped to what the
//     type leaves around z, where bounds show that y is a number, or no instruction rounds it. A
//     rectifier before it joins the clipping. What bytes hold only with their zero point stays so
//     on scalar cores, unless a product reads it: half the memory.
//   Requires: simplified.  Ensures: the same values to the rounding of what is rounded.
#pragma once

#include "ir/graph/module.h"
#include "ir/target/target_info.h"

namespace backcast {

Module requantise(const Module& module, const TargetInfo& target);

}  // namespace backcast
