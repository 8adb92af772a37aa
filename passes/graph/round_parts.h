// What is joined only to be rounded to small integers is rounded before: quantise(concat(a, b)) is
// concat(quantise(a), quantise(b)), so that no joined tensor of floats exists, and parts that were
// integers stay such. Reshapes and transposes behind the concatenation move integers then.
//   Requires: simplified.  Ensures: the same values.
#pragma once

#include "ir/graph/module.h"

namespace backcast {

Module round_parts(const Module& module);

}  // namespace backcast
