// Joins units that read the same over the same axes and do not depend on one another: updates of
// several optimizer slots, sums over the same tensor. Each operand is then read once.
//   Requires: units as fuse() leaves them after inlining.
//   Ensures: the same values. Products keep kernels of their own, whose tiles hold one result.
#pragma once

#include "passes/lower/unit_list.h"

namespace backcast {

void join_siblings(UnitList& list);

}  // namespace backcast
