// Replaces calls and composites by the bodies of their functions, and loops of one trip by theirs.
//   Requires: no recursion between functions.  Ensures: the entries' functions call nothing;
//   other functions are gone.
#pragma once

#include "ir/graph/module.h"

namespace backcast {

Module inline_calls(const Module& module);

}  // namespace backcast
