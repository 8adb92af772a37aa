// Which storage a step touches.
#pragma once

#include <set>

#include "ir/loop/program.h"

namespace backcast::loop {

/// The owners of what a step writes (or updates), its body included. Kernels must exist.
std::set<BufferId> written_buffers(const Program& program, const Step& step);
/// The owners of what a step reads (or updates), its body included.
std::set<BufferId> read_buffers(const Program& program, const Step& step);
/// Whether the entry point writes a state buffer.
bool writes_state(const Program& program, const EntryPoint& entry);

}  // namespace backcast::loop
