// Sums that a loop gathers trip by trip become one contraction behind it: of acc' = acc + dot(a,
// b), which is all that happens to acc, the a and b of all trips are stacked and contracted over
// the trips, too. This is what the gradient of a recurrent network's weights is: instead of a
// matrix, every trip moves two vectors, most of which are stacked already.
//   Requires: simplified functions.
//   Ensures: the same values but for the order of sums. Loops whose trips are counted at run time
//            stay, and so do sums that move fewer bytes where they are.
#pragma once

#include "ir/graph/module.h"

namespace backcast {

/// `frugal`: only where what is stacked for it takes no more than the sum did.
Module defer_sums(const Module& module, bool frugal);

}  // namespace backcast
