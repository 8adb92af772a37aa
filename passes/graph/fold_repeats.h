// A convolution of what nearest neighbours repeat, conv(repeat(x), w), is one of x with zeros in
// between, whose weights are sums of r neighbours in w: of 3 x 3 weights on an image twice as large
// each result takes 2 x 2, once phases leave out the zeros, and nothing is repeated. Where every
// result sees one element, results are repeated; and what was concatenated with x has a product of
// its own.
//   Requires: simplified, or as imported.  Ensures: the same values to rounding.
#pragma once

#include "ir/graph/module.h"

namespace backcast {

Module fold_repeats(const Module& module);

}  // namespace backcast
