// How much machine code a program takes, roughly: for choosing between programs before there is
// any.
#pragma once

#include <cstdint>

#include "ir/loop/program.h"

namespace backcast::loop {

/// Instructions of the scheduled kernels: loads, stores, operations on anything but indices, and
/// what a loop and a call take; bodies of unrolled loops as often as they stand there. Equal
/// kernels count as often as they are.
int64_t code_size(const Program& program);

}  // namespace backcast::loop
