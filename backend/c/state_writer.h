// The state of a training library as C: the runtime, the table of variables, the functions around
// it. Internal to backend/c.
#pragma once

#include <string>

#include "backend/c/constants.h"
#include "backend/library/abi.h"

namespace backcast::c_backend {

/// The runtime as local functions, and `state_layout`, which entry points check states against.
/// Empty for a library without state. `constants` tells where initial values are.
std::string state_text(const Abi& abi, const loop::Program& program,
                       const ConstantsText& constants);
/// The exported functions of the state.
std::string state_functions_text(const Abi& abi, const ConstantsText& constants);

}  // namespace backcast::c_backend
