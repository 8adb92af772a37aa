// Operations on vectors that fill no register or more than one.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "backend/c/prelude.h"

namespace backcast::c_backend {

/// The text of an operation on operands of a type.
using VectorOperation = std::function<std::string(Prelude& prelude, loop::Type type,
                                                  const std::vector<std::string>& operands)>;

/// A function's body: `operation` on vectors of fewer than four lanes in a register of four, on
/// others by halves. Operands, names of parameters, are of `type`; the result is of `result`, which
/// has as many lanes.
std::string by_registers(Prelude& prelude, loop::Type type, loop::Type result,
                         const std::vector<std::string>& operands,
                         const VectorOperation& operation);

/// Statements that set the lanes of `r` one by one; `scalar_form` is of `lane`. The vectoriser of
/// straight-line code may join them again.
std::string by_lanes(loop::Type type, const std::string& scalar_form);

}  // namespace backcast::c_backend
