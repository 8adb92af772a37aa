// Graph IR → program: every node of the entries' functions becomes a kernel of compute definitions
// (or a view), and every value a buffer.
//   Requires: calls and composites inlined; every operator has a lowering rule.
//   Ensures: one entry point per entry; kernels hold definitions only where their operator is
//   expressible as one; results are output buffers, or copied to state at the entry's end.
#pragma once

#include <string>

#include "ir/graph/module.h"
#include "ir/loop/program.h"

namespace backcast {

/// `name` becomes the program's name (a C identifier). CompileError naming nodes that have no rule.
loop::Program lower(const Module& module, const std::string& name);

}  // namespace backcast
