// Joins the update of a state tensor with the product that reads all of the old one: at batch 1, a
// dense layer's gradient with respect to its operand and its optimizer step read the same matrix.
//   Requires: fused definitions, updates in place (update_in_place), before scheduling.
//   Ensures: the same values. A joined kernel holds two definitions, the product's and then the
//   update's, and is right in this order; scheduling writes the second into the first where each
//   element is read (follow_reads.h).
#pragma once

#include "ir/loop/program.h"

namespace backcast {

loop::Program join_updates(const loop::Program& program);

}  // namespace backcast
