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

/// How a call ends, as far as its arguments and values decide.
enum class RunStatus : uint8_t {
  ok,
  index,     // an input lies outside of its range
  state,     // the entry point requires a count that is zero
  nonfinite  // a check_finite failed
};

struct RunResult {
  RunStatus status = RunStatus::ok;
  std::vector<Literal> outputs;  // whatever they held when the run ended; garbage where unwritten
};

/// The contents of the state by the names of its variables.
using StateValues = std::map<std::string, Literal>;

/// What init makes: initial values, zeros where there is none, the generators' keys from the seed
/// (low half, high half).
StateValues initial_state(const Program& program, uint64_t seed = 0);

/// Runs an entry point on `state`, which it takes and updates. Inputs in order → outputs in order.
/// Only a run that reaches its end updates the state.
RunResult interpret(const Program& program, const std::string& entry,
                    const std::vector<Literal>& inputs, StateValues& state);

/// Runs an entry point on the initial state: inputs in order → outputs in order; CompileError
/// unless it reaches its end. Before planning every arena buffer has
/// memory of its own; a planned program runs inside one arena filled with garbage first.
std::vector<Literal> interpret(const Program& program, const std::string& entry,
                               const std::vector<Literal>& inputs);

}  // namespace backcast::loop
