// Checks a module: operand ids precede their uses, arity, parameters first, every type equals the
// re-inferred one, every node has a location, symbols are declared.
#pragma once

#include "ir/graph/module.h"

namespace backcast {

/// Throws InternalError naming `after` (a pass), function and node; `after` may be empty.
void verify(const Module& module, std::string_view after = {});

}  // namespace backcast
