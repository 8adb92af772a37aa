// Buffers and kernels that passes add to a program, under names that nothing has yet.
#pragma once

#include <string>

#include "ir/loop/program.h"

namespace backcast::loop {

/// Adds the buffer as `wish`, or `wish_2`, `wish_3`, …
BufferId add_buffer(Program& program, const std::string& wish, Buffer buffer);
/// A constant of these values, made from what stands at `loc` in the model.
BufferId add_constant(Program& program, const std::string& wish, Literal value, Loc loc);
/// The same for a kernel; returns its name.
std::string add_kernel(Program& program, const std::string& wish, Kernel kernel);
/// A symbol of the program with this range; returns its name.
std::string add_symbol(Program& program, const std::string& wish, DimRange range);

}  // namespace backcast::loop
