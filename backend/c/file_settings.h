// The beginning of a C file: what it asks of the compiler, and the macros of what compilers differ
// in. Internal to backend/c.
#pragma once

#include <string>

#include "ir/target/target_info.h"

namespace backcast::c_backend {

/// Ends a compilation without the options that the target's code relies on, before hundreds of
/// messages do.
std::string options_check(const TargetInfo& target);
/// Pragmas, and macros of how functions are compiled. Vectors are those of GNU C; without, any
/// compiler of C99 has what it takes: BC_GNU_C says whether this one has more.
std::string file_settings(const TargetInfo& target, bool has_vectors);

}  // namespace backcast::c_backend
