// Probabilities of classes from those of pairs of classes.
#pragma once

#include "frontend/node_context.h"

namespace backcast {

/// `pairs` [examples, classes·(classes-1)/2] has in column (i, j), i < j, row by row, how probable
/// class i is where it is i or j; strictly between 0 and 1. The result is [examples, classes].
/// Source: the second method of Wu, Lin and Weng, Probability Estimates for Multi-class
/// Classification by Pairwise Coupling, JMLR 5 (2004), by its fixed-point iteration and with the
/// bounds on it that LIBSVM has: an example stops where its equations are met to 0.005 / classes.
ValueId coupled_probabilities(NodeContext& n, ValueId pairs, int64_t classes);

}  // namespace backcast
