// The verifier's part about state: roles and places of its variables, and what entry points promise
// about it. Internal to ir/loop.
#pragma once

#include <string_view>

#include "ir/loop/program.h"

namespace backcast::loop {

/// Throws InternalError like verify(). Buffers that steps and entry points name must exist.
void verify_state(const Program& program, std::string_view after);

}  // namespace backcast::loop
