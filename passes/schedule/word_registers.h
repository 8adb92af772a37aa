// Sums of products of bytes by the register, where the target adds up those of all lanes of two
// (vmladava): the sum's axis falls into registers and their lanes, that of the results into
// columns which share what they read, and the constant lies in the order of reading.
//   Requires: definitions, before scheduling; products are dot4_signed of words (pair_products).
//   Ensures: the same values.
#pragma once

#include "ir/loop/program.h"
#include "ir/target/target_info.h"

namespace backcast {

loop::Program word_registers(const loop::Program& program, const TargetInfo& target);

}  // namespace backcast
