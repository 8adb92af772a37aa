// Moves slices towards what they are taken of, through contractions, reductions and elementwise
// operators, so that only what a slice keeps is computed: the gradient of a trained range of a
// tensor is otherwise computed in full.
//   Ensures: equal results; nothing is computed twice (a value with other users is sliced as it
//   is); what nobody needs any more is gone.
#pragma once

#include "ir/graph/module.h"

namespace backcast {

Function sink_slices(const Module& module, const Function& function);

}  // namespace backcast
