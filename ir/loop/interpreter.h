// Runs programs and kernels as they stand: definitions, scheduled loops, or both. Bounds of every
// load and store are checked (InternalError names kernel, buffer and index). The judge of
// schedules.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "ir/graph/literal.h"
#include "ir/loop/program.h"

namespace backcast::loop {

/// Runs a kernel on raw buffers (one per BufferParam, at least the live size) and size values.
void interpret(const Kernel& kernel, const std::map<std::string, MathFunction>& functions,
               const std::vector<std::span<std::byte>>& buffers,
               const std::map<std::string, int64_t>& sizes);

/// Runs an entry point: inputs in order → outputs in order. Before planning every arena buffer has
/// memory of its own; a planned program runs inside one arena filled with garbage first.
std::vector<Literal> interpret(const Program& program, const std::string& entry,
                               const std::vector<Literal>& inputs);

}  // namespace backcast::loop
