// Programs for the tests of ABI, header and report.
#pragma once

#include "ir/loop/program.h"

namespace backcast {

/// mlp: x f32[N,4], N in 1..8, through two kernels on an arena of 256 bytes, to f32[N,2] and a
/// boolean output.
loop::Program sample_program();

/// Names that need care: keywords, spaces, digits, letters beyond ASCII, equal after replacement.
loop::Program program_with_odd_names();

}  // namespace backcast
