// The gradient of scan: a second scan that runs back over the trips that were executed.
#pragma once

#include "ir/graph/gradient.h"

namespace backcast::ops {

std::vector<Adjoint> gradient_of_scan(GradientContext& context);

}  // namespace backcast::ops
