// What a variable of the state is for. Parameters and statistics make up the flat vector that a
// caller reads and writes; the rest is the optimizer's.
#pragma once

#include <cstdint>

#include "ir/graph/attributes.h"

namespace backcast {

enum class StateRole : uint8_t {
  parameter,  // trained
  statistic,  // running mean or variance
  slot,       // a moment of the optimizer
  gradient,   // accumulated
  step,       // number of updates, i32
  rate,       // learning rate
  generator   // key of the random generator, u32[2]
};
BACKCAST_ENUM_NAMES(StateRole, "parameter", "statistic", "slot", "gradient", "step", "rate",
                    "generator");

}  // namespace backcast
