// The verifier's part about order: steps read what earlier steps have written. Internal to ir/loop.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>

#include "ir/loop/program.h"

namespace backcast::loop {

/// The parameters that a kernel's text reads before it has stored anything to them. Others, such
/// as the copy of an operand in the order of its use, may hold anything when the kernel begins.
std::set<std::string> read_first(const Kernel& kernel);

/// Throws InternalError, naming the step, where one reads storage of the arena or an output before
/// any step has written to it. Buffers and kernels that steps name must exist.
/// `read_first`: of every kernel.
void verify_reads(const Program& program,
                  const std::map<std::string, std::set<std::string>>& read_first,
                  std::string_view after);

}  // namespace backcast::loop
