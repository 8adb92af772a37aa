// What a compiled model costs, layer by layer: RAM, flash, stack, multiply-accumulates, and which
// buffers live where while each step runs.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "backend/library/abi.h"
#include "ir/loop/program.h"

namespace backcast {

/// A convolution that minimal filtering could compute, and how it is computed.
struct ReportWinograd {
  std::string node;
  int tile = 0;                        // outputs per side; 0: directly
  double error = 0, direct_error = 0;  // measured, relative to the layer's largest result
  int64_t weight_bytes = 0, scratch_bytes = 0;
};

struct ReportOptions {
  std::string model_file, target, version;
  std::optional<int64_t> code_bytes;   // machine code, where it is known
  std::optional<int64_t> stack_bytes;  // most that a call takes
  int64_t table_bytes = 0;             // names of steps, what describes the state; with code_bytes
  int64_t dropped_channels = 0;        // that no input within `promise` changes
  int64_t macs_before = 0;             // with them
  std::string promise;                 // "valid for inputs within ±1e+06"; empty: for all
  std::vector<std::string> stream;     // what a call takes and gives of sequences
  int64_t macs_whole = 0;  // of a call that would be given all of a sequence; 0: of any length
  std::vector<ReportWinograd> winograd;
  std::vector<std::string> skips_zeros;  // nodes whose sums leave out factors of zero
  std::string examples;                  // what goes example by example
  std::string bands;                     // what runs in bands, and what that copies and saves
  std::string recomputation;             // what is computed again, and what that costs and saves
  std::map<std::string, int64_t> kernel_bytes;  // machine code by kernel, where it is known
};

/// An arena buffer that holds a value while a step runs, or an operand of the step.
struct ReportBuffer {
  std::string name;
  std::string type;     // "f32[N,64]"
  std::string storage;  // "arena", "input", "output", "constant", "state"
  std::string access;   // operands: "read", "write", "update"
  int64_t bytes = 0;    // at the largest sizes
  int64_t offset = -1;  // in the arena; -1 elsewhere
};

struct ReportStep {
  int32_t number = 0;  // what the hooks of bc_context are told
  std::string name, kernel;
  std::vector<std::string> nodes;  // of the model: `conv1 (Conv)`
  int64_t macs = 0;                // in all trips of the loops around it, at most
  int64_t weight_bytes = 0;        // constants it reads
  int64_t code_bytes = 0;          // of its kernel, where known and no step before has it
  int64_t live_bytes = 0;          // of the arena, while it runs
  bool is_shared = false;          // out among the threads of a parallel_for
  std::vector<ReportBuffer> operands;
  std::vector<ReportBuffer> live;  // by offset
};

/// An arena buffer over time.
struct ReportLifetime {
  ReportBuffer buffer;
  int32_t first = 0, last = 0;  // numbers of steps, inclusive
};

struct ReportEntry {
  std::string name;
  int64_t macs = 0;
  std::vector<ReportStep> steps;
  std::vector<ReportLifetime> lifetimes;  // in order of their first step
};

/// A variable of the state.
struct ReportState {
  std::string name, role, type;
  int64_t offset = 0, bytes = 0;
};

struct Report {
  std::string name, model_file, target, version;
  int64_t arena_bytes = 0, arena_bound = 0, arena_alignment = 1;
  int64_t weight_bytes = 0;
  int64_t parameters = 0;   // elements of constant and of trained tensors
  int64_t state_bytes = 0;  // of a training library; 0: it has no state
  int64_t state_alignment = 1;
  std::vector<ReportState> state;  // in order
  std::optional<int64_t> code_bytes, stack_bytes;
  int64_t table_bytes = 0;
  int64_t dropped_channels = 0, macs_before = 0;
  std::string promise;
  std::vector<std::string> stream;
  int64_t macs_whole = 0;
  std::vector<ReportWinograd> winograd;
  std::vector<std::string> skips_zeros;
  std::string examples;       // "computes 14 of 15 steps example by example"; empty: nothing
  std::string bands;          // "computes 6 of 31 steps in bands, …"; empty: nothing
  std::string recomputation;  // "recomputes 3 values, …"; empty: nothing
  std::vector<ReportEntry> entries;
};

/// Raised when a key of the JSON changes its meaning or goes.
inline constexpr int kReportSchema = 1;

Report report_of(const loop::Program& program, const ReportOptions& options);
/// A table for people: `name.report.txt`.
std::string report_text(const Report& report);
/// The same and more for programs: `name.report.json`; "schema" holds kReportSchema.
std::string report_json(const Report& report);

}  // namespace backcast
