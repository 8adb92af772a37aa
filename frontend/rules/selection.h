// Results as large as the data has it: how many there are is counted first, and a symbol stands for
// it from there on (ops::prefix).
#pragma once

#include "frontend/node_context.h"

namespace backcast {

/// The places where a bool vector is true, in order: [N], of some type of
/// integers. `most`: how many there can be.
ValueId true_places(NodeContext& n, ValueId mask, const Dim& most);

/// Flat places in a tensor of this shape as one vector of coordinates each: [N, rank].
ValueId coordinates(Emitter& e, ValueId places, const Shape& shape);

/// x[places[i]] = updates[i] of vectors, or combined with it; places beyond the end left out.
ValueId put(Emitter& e, ValueId x, ValueId places, ValueId updates, Combiner combiner);

}  // namespace backcast
