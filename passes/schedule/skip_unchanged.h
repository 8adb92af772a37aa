// Leaves out the rows of an update in place that a factor of zero leaves as they are:
// w[i, j] -= r·(d[i]·x[j]) neither reads nor writes row i where d[i] is zero, which behind a
// rectifier is every other row.
#pragma once

#include "ir/loop/program.h"

namespace backcast {

/// Puts `if factor != 0` around the bodies of loops, or the steps of unrolled ones, whose stores
/// all store what is there already when the factor, which is the same throughout a body, is zero,
/// and drops loops that store what is there already in any case.
///   Requires: scheduled kernels, each called by one step; updates in place.
///   Ensures: the same results, but for the sign of a zero and where the product of zero and an
///   infinity or a NaN would have become an element's new value: the element stays. What a guarded
///   kernel updates is one parameter of its (`update`), no longer two that share their storage.
loop::Program skip_unchanged(const loop::Program& program);

}  // namespace backcast
