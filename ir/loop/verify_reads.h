// The verifier's part about order: steps read what earlier steps have written. Internal to ir/loop.
#pragma once

#include <string_view>

#include "ir/loop/program.h"

namespace backcast::loop {

/// Throws InternalError, naming the step, where one reads storage of the arena or an output before
/// any step has written to it. Buffers and kernels that steps name must exist.
void verify_reads(const Program& program, std::string_view after);

}  // namespace backcast::loop
