// Over which steps each storage is live, loops included.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "ir/loop/program.h"

namespace backcast::loop {

/// All steps, a step before those it holds (`body`, then `otherwise`): the numbering of an entry
/// point's steps in plans, reports and hooks.
std::vector<const Step*> flat_steps(const std::vector<Step>& steps);
/// Per step in that order how often it runs, at most, for the loops around it.
std::vector<int64_t> runs_of_steps(const Program& program, const EntryPoint& entry);

/// How many of these numbers a step takes: its own and those of what it holds.
int64_t count_steps(const Step& step);

/// Numbers of steps, both ends inclusive; first > last when the storage is never used.
struct LiveRange {
  int64_t first = INT64_MAX;
  int64_t last = -1;
};
/// Per buffer that owns its storage. What a loop shares with the steps around it, and what one trip
/// leaves to the next (read before it is written), lives for the whole loop.
std::vector<LiveRange> live_ranges(const Program& program, const EntryPoint& entry);

/// The symbols that loops bind: they have no value outside and are no fields of the interface.
std::set<std::string> loop_symbols(const Program& program);
/// The symbols that buffers and steps depend on and neither loops nor steps give a value: callers
/// do. What only kernels know (a size that every call gives a constant) is none.
std::set<std::string> caller_symbols(const Program& program);

}  // namespace backcast::loop
