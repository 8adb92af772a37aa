// Buffers and kernels that passes add to a program, under names that nothing has yet.
#pragma once

#include <string>

#include "ir/loop/program.h"

namespace backcast::loop {

/// Adds the buffer as `wish`, or `wish_2`, `wish_3`, …
BufferId add_buffer(Program& program, const std::string& wish, Buffer buffer);
/// A constant of these values, made from what stands at `loc` in the model.
BufferId add_constant(Program& program, const std::string& wish, Literal value, Loc loc);
/// A constant made from another, named like that one and `ending`; where one of these values was
/// made from it before, that one: copies of a kernel then read the same.
BufferId derived_constant(Program& program, BufferId from, const std::string& ending,
                          Literal value);
/// Adds the kernel likewise; returns its name.
std::string add_kernel(Program& program, const std::string& wish, Kernel kernel);
/// Gives every call of a kernel but the first a copy of it: what a pass makes of a kernel and of
/// what one call hands over must not reach the others. `share_kernels` joins what stays alike.
void separate_calls(Program& program);
/// A symbol of the program with this range; returns its name.
std::string add_symbol(Program& program, const std::string& wish, DimRange range);

}  // namespace backcast::loop
