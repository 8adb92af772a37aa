// Functions of one small integer, such as an activation between two quantisations, become tables on
// scalar cores: a load in place of all that was computed, exponentials and divisions included. With
// vectors, whose lanes look up one by one or in registers, where all of it takes longer than that.
//   Requires: simplified, quantised values stored as integers (requantise).
//   Ensures: the values that evaluation gives, simplified.
#pragma once

#include "ir/graph/module.h"
#include "ir/target/target_info.h"

namespace backcast {

Module tabulate(const Module& module, const TargetInfo& target);

}  // namespace backcast
