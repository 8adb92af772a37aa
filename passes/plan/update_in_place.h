// New values of state computed where the old ones are, as early as that is legal.
//   Requires: fused kernels, which say what they may write over; state is written by copy steps.
//   Ensures: the same values. Where the kernel that computes a new value reads the old one at the
//   same place or not at all, and every other reader can run before it, the copy disappears; such
//   kernels run as soon as their operands are there, so that a gradient does not outlive its
//   update. Rows that only move up within a state are moved there, and new ones written behind
//   them; parts of other values that are kept leave the arena as early. Nothing that writes state
//   precedes a check_finite.
#pragma once

#include "ir/loop/program.h"

namespace backcast {

loop::Program update_in_place(const loop::Program& program);

}  // namespace backcast
