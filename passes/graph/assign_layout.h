// Channels last for the whole graph: convolutions compute in N…C order, transposes move to where
// they cancel or become part of a neighbour.
//   Requires: calls inlined.  Ensures: the same results; parameters and results keep their layout.
#pragma once

#include "ir/graph/module.h"

namespace backcast {

Module assign_layout(const Module& module);

}  // namespace backcast
