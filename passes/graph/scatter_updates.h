// What the gradient of a lookup scatters goes to the parameter at once: x - c·scatter(0, i, u)
// becomes scatter(x, i, -c·u), which touches the rows that were looked up alone. There is no
// gradient of the table's size then, and an update in place leaves all other rows as they are.
//   Requires: simplified functions.
//   Ensures: the same values but for rounding, and where a factor of infinity or NaN would have met
//   the zeros of rows that nobody looked up: these stay. Modules without state stay as they are.
#pragma once

#include "ir/graph/module.h"

namespace backcast {

Module scatter_updates(const Module& module);

}  // namespace backcast
