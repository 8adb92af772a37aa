// The machine this process runs on, as a target.
#pragma once

#include "ir/target/target_info.h"

namespace backcast {

/// Target `native`: processor and features as LLVM detects them.
TargetInfo host_target();

}  // namespace backcast
