// How much machine code a program takes and how long it runs, roughly: for choosing between
// programs before there is any.
#pragma once

#include <cstdint>

#include "ir/loop/program.h"

namespace backcast::loop {

/// Loads, stores, operations on anything but indices, and what loops and calls take. A vector is
/// one.
struct InstructionCounts {
  int64_t code = 0;  // as they stand there: unrolled bodies as often as that
  /// By every entry point once; loops at their longest, those over a word's bits for half of
  /// them, branches both ways.
  int64_t executed = 0;
};

/// Of scheduled kernels and the steps that call them.
InstructionCounts instruction_counts(const Program& program);

}  // namespace backcast::loop
