// Kernels whose iterations a caller may share out (loop::Step::grain). Internal to backend/c.
#pragma once

#include <string>

#include "ir/loop/stmt.h"

namespace backcast::c_backend {

/// `for_each_piece`: hands a kernel's pieces to the caller's parallel_for, or does all in one.
std::string pieces_text();

/// "struct kernel_conv_call" for "kernel_conv": its arguments but for the range.
std::string call_struct(const std::string& function);
/// "kernel_conv_piece": a bc_loop_body that does a range of the kernel's iterations.
std::string piece_function(const std::string& function);
/// Both of these.
std::string piece_text(const loop::Kernel& kernel, const std::string& function);

}  // namespace backcast::c_backend
