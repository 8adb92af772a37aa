// Runs passes in order: verifies after each, prints and stops where asked, times.
#pragma once

#include <functional>
#include <optional>
#include <ostream>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph/module.h"
#include "ir/loop/program.h"
#include "ir/target/target_info.h"
#include "passes/graph/drop_constant_channels.h"
#include "passes/graph/stream.h"
#include "passes/schedule/schedule.h"
#include "passes/winograd/winograd.h"

namespace backcast {

/// What users choose for single passes.
struct PassOptions {
  std::optional<InputBounds> inputs;  // what callers promise to give; for dropping channels
  WinogradOptions winograd = {};
  ScheduleOptions schedule = {};
  std::optional<StreamOptions> stream = {};  // sequences come piece by piece
  /// Bytes that arena and state may take together, see fit_bands.h and fit_memory.h; none: what
  /// costs little is computed again.
  std::optional<int64_t> ram;
  /// Chains run band by band unasked, where that saves time or, on a microcontroller, RAM.
  bool bands = true;
  /// No chain does so, not even for `ram`: bands end where a value is computed again.
  bool whole = false;
  /// Loops keep nothing that they could compute again: for what does not fit `ram` otherwise.
  bool frugal = false;
  /// The program is only weighed against others.
  bool weighed = false;
  /// Told what a long search is at, now and then.
  std::function<void(std::string_view)> progress = {};
};

/// What passes have to say beside the IR.
struct PassNotes {
  DroppedChannels dropped = {};  // from within tensors
  StreamNotes stream = {};       // empty inputs: there is no stream
  WinogradNotes winograd = {};
  std::vector<Loc> skipping;  // nodes whose sums leave out factors of zero
  std::string examples;       // what goes example by example; empty: nothing
  std::string bands;          // what runs in bands to fit; empty: nothing
  std::string recomputation;  // what is computed again; empty: nothing
};

struct PassContext {
  const TargetInfo& target;
  const PassOptions& options;
  PassNotes& notes;
};

/// A function from IR to the same kind of IR under a name. Most need nothing else, some the target,
/// a few have options or something to say.
template <class IR>
class Pass {
 public:
  Pass(std::string_view pass_name, IR (*function)(const IR&))
      : name(pass_name),
        run([function](const IR& ir, const PassContext&) { return function(ir); }) {}
  Pass(std::string_view pass_name, IR (*function)(const IR&, const TargetInfo&))
      : name(pass_name), run([function](const IR& ir, const PassContext& context) {
          return function(ir, context.target);
        }) {}
  Pass(std::string_view pass_name, IR (*function)(const IR&, const PassContext&))
      : name(pass_name), run(function) {}

  std::string_view name;
  std::function<IR(const IR&, const PassContext&)> run;
};
using GraphPass = Pass<Module>;
using LoopPass = Pass<loop::Program>;

struct PipelineOptions {
  std::string name = "model";         // of the library: a C identifier
  std::set<std::string> print_after;  // pass names, or "all"
  std::string stop_after;             // a pass name; empty: run to the end
  bool verify = true;
  bool round_trip = false;      // also check parse(print(m)) == m after every pass
  std::ostream* log = nullptr;  // where print_after and timings go
  bool timings = false;
  PassOptions passes = {};
  /// Passes of the caller's own. They run once calls are inlined: `main` is all there is.
  std::vector<GraphPass> extra_graph_passes;
};

/// What is there after the last pass that ran: graph IR until lowering, a program from then on.
struct PipelineResult {
  Module module;
  loop::Program program;
  bool lowered = false;
  PassNotes notes = {};
};

/// Every pass, in the order in which compilation runs them; `lower` stands between the two lists.
const std::vector<GraphPass>& graph_passes();
const std::vector<LoopPass>& loop_passes();

/// The names of all passes in that order, `lower` among them.
std::vector<std::string> pass_names();
/// CompileError that names those there are.
[[noreturn]] void fail_unknown_pass(std::string_view name, const std::vector<std::string>& known);

/// Runs the pass of that name on what is there, by itself: with the widest range of inputs and
/// Winograd's form where it pays. Beside pass_names() there are those that take arguments
/// (asked_passes.h), winograd_f2 and winograd_f4. `lower` calls the program `program_name`.
/// CompileError for a name that does not exist and for a pass that needs the other kind of IR.
void run_pass(PipelineResult& reached, std::string_view name, const TargetInfo& target,
              const std::string& program_name);

/// Graph IR with a function `main` → a program ready for an emitter. CompileError for what cannot
/// be compiled and for a pass name that does not exist.
PipelineResult run_pipeline(const Module& module, const TargetInfo& target,
                            const PipelineOptions& options);
/// The same from a program on, as lower() or a text with compute definitions gives it.
PipelineResult run_pipeline(const loop::Program& program, const TargetInfo& target,
                            const PipelineOptions& options);

}  // namespace backcast
