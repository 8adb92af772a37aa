// Which part of a model can still be trained when something on the way has no gradient.
#pragma once

#include "ir/graph/module.h"
#include "passes/train/trainable.h"

namespace backcast {

/// The largest N for which the loss, result 0 of `loss`, can be differentiated by the candidates of
/// the last N layers; 0 when there is no such N. Found by trying, so that it is right whatever
/// stands in the way; only asked for when there is an error to report.
int64_t nearest_cut(const Module& module, const Function& loss,
                    const std::vector<TrainableCandidate>& candidates);

}  // namespace backcast
