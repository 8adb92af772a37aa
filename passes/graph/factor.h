// Collects common factors of sums in functions that train: t*a + t*b becomes t*(a + b), and x/c for
// a c that many elements share becomes x*(1/c). A derivative arrives as t times something of the
// forward pass along every path; collected, that something is one tensor, which the forward pass
// can leave behind in place of all that it was made of.
//   Requires: simplified functions.
//   Ensures: the same values but for rounding; functions of modules without state stay as they are.
#pragma once

#include "ir/graph/module.h"

namespace backcast {

Module factor(const Module& module);

}  // namespace backcast
