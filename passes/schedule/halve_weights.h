// Weights that fit in 4 bits lie two to a byte where nothing multiplies words of them: one load and
// three instructions for two, and half the flash.
//   Requires: definitions, before scheduling; products of words have been formed (pair_products).
//   Ensures: the same values. Neighbours along a sum share a byte, the second one at its top.
#pragma once

#include "ir/loop/program.h"
#include "ir/target/target_info.h"

namespace backcast {

loop::Program halve_weights(const loop::Program& program, const TargetInfo& target);

}  // namespace backcast
