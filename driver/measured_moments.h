// What weights of 4 bits are multiplied by, summed up over the calls of a model.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "driver/quantize.h"
#include "frontend/round_weights.h"
#include "frontend/weight_moments.h"

namespace backcast {

/// `request` is the model's, `bytes` the model with the nodes.
std::map<GraphEdit::Place, std::vector<Moments>> measured_moments(const MomentNodes& nodes,
                                                                  CompileRequest request,
                                                                  std::string bytes,
                                                                  const Calls& calls);

}  // namespace backcast
