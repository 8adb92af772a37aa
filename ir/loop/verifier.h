// Checks a program: names bound before use and unique, types of operands agree, buffers and ranks
// match, calls fit their kernels, steps read what was written, planned arena buffers inside the
// arena and live ones disjoint.
#pragma once

#include <string_view>

#include "ir/loop/program.h"

namespace backcast::loop {

/// Throws InternalError naming `after` (a pass), kernel and expression.
void verify(const Program& program, std::string_view after = {});
void verify(const Kernel& kernel, std::string_view after = {});

}  // namespace backcast::loop
