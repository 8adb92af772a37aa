// Runs the passes of pipeline.cpp in order, and once more where what came out does not fit.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <optional>

#include "ir/graph/text.h"
#include "ir/graph/verifier.h"
#include "ir/loop/text.h"
#include "ir/loop/verifier.h"
#include "ir/ops/ops.h"
#include "passes/lower/lower.h"
#include "passes/pipeline.h"
#include "passes/plan/fit_memory.h"

namespace backcast {
namespace {

class PassRunner {
 public:
  PassRunner(const TargetInfo& target, const PipelineOptions& options)
      : target_(target), options_(options) {}

  PipelineResult run(const Module& module) {
    check_names();
    PipelineResult r{.module = module};
    for (const GraphPass& pass : graph_passes_to_run()) {
      timed(pass.name, [&] { r.module = pass.run(r.module, context(r)); });
      if (after_graph(pass.name, r.module)) return r;
    }
    timed("lower", [&] { r.program = lower(r.module, options_.name); });
    r.lowered = true;
    if (after_loop("lower", r.program)) return r;
    return run_loop_passes(std::move(r));
  }

  PipelineResult run(const loop::Program& program) {
    check_names();
    try {
      loop::verify(program);
    } catch (const InternalError& error) {
      throw CompileError(error.what());  // a program from outside is its author's responsibility
    }
    return run_loop_passes({.program = program, .lowered = true});
  }

 private:
  PipelineResult run_loop_passes(PipelineResult r) {
    for (const LoopPass& pass : loop_passes()) {
      timed(pass.name, [&] { r.program = pass.run(r.program, context(r)); });
      if (after_loop(pass.name, r.program)) return r;
    }
    return r;
  }

  PassContext context(PipelineResult& r) const { return {target_, options_.passes, r.notes}; }

  std::vector<GraphPass> graph_passes_to_run() const {
    std::vector<GraphPass> passes = graph_passes();
    passes.insert(passes.begin() + 1, options_.extra_graph_passes.begin(),
                  options_.extra_graph_passes.end());
    return passes;
  }

  void check_names() const {
    std::vector<std::string> known = pass_names();
    for (const GraphPass& pass : options_.extra_graph_passes) known.emplace_back(pass.name);
    known.emplace_back("all");
    std::set<std::string> wanted = options_.print_after;
    if (!options_.stop_after.empty()) wanted.insert(options_.stop_after);
    for (const std::string& name : wanted) {
      if (std::find(known.begin(), known.end(), name) == known.end())
        fail_unknown_pass(name, known);
    }
  }

  template <class F>
  void timed(std::string_view name, const F& f) {
    auto begin = std::chrono::steady_clock::now();
    f();
    std::chrono::duration<double, std::milli> spent = std::chrono::steady_clock::now() - begin;
    if (options_.timings && options_.log) {
      *options_.log << fmt::format("{:>16} {:9.2f} ms\n", name, spent.count());
    }
  }

  bool wants(std::string_view name) const {
    return options_.log &&
           (options_.print_after.count("all") || options_.print_after.count(std::string(name)));
  }

  bool after_graph(std::string_view name, const Module& module) const {
    if (options_.verify) verify(module, name);
    if (options_.round_trip) {
      Module parsed = parse_module(print(module), print_constants(module));
      BC_CHECK(equal(parsed, module), "after {}: the printed module parses to another one", name);
    }
    if (wants(name)) *options_.log << "// after " << name << "\n" << print(module);
    return options_.stop_after == name;
  }

  bool after_loop(std::string_view name, const loop::Program& program) {
    if (options_.verify) verifier_.run(program, name);
    if (options_.round_trip) {
      loop::Program parsed =
          loop::parse_program(loop::print(program), loop::print_constants(program));
      BC_CHECK(loop::equal(parsed, program), "after {}: the printed program parses to another one",
               name);
    }
    if (wants(name)) *options_.log << "// after " << name << "\n" << loop::print(program);
    return options_.stop_after == name;
  }

  const TargetInfo& target_;
  const PipelineOptions& options_;
  loop::Verifier verifier_;
};

bool has_loops(const Module& module) {
  const auto loops = [](const Node& node) { return node.op == &ops::scan; };
  return std::ranges::any_of(module.functions, [&](const auto& function) {
    return std::ranges::any_of(function.second.nodes, loops);
  });
}

/// What a minimally filtered program takes by the pass's model.
double winograd_cycles(const PipelineResult& result) {
  double sum = 0;
  for (const WinogradLayer& layer : result.notes.winograd.layers) sum += layer.cycles;
  return sum;
}

/// Whether any layer was found worth it.
bool filters(const PipelineResult& result) {
  return std::ranges::any_of(result.notes.winograd.layers,
                             [](const WinogradLayer& layer) { return layer.tile > 0; });
}

/// The same way, computing more again so that it fits; nothing where that is out of reach.
std::optional<PipelineResult> run_within(const Module& module, const TargetInfo& target,
                                         PipelineOptions way, int64_t ram) {
  way.passes.ram = ram;
  try {
    return PassRunner(target, way).run(module);
  } catch (const DoesNotFit&) {
    return std::nullopt;
  }
}

/// The faster of two programs with minimal filtering, if they take no more arena than the direct
/// one. The pass estimates the arena; how far it is off only the end of the way tells, so it is
/// told once. A training step that neither way fits computes some more again.
PipelineResult within_direct_arena(const Module& module, const TargetInfo& target,
                                   const PipelineOptions& options) {
  PipelineOptions direct = options, way = options;
  direct.passes.winograd.mode = WinogradMode::off;
  direct.log = nullptr;
  PipelineResult best = PassRunner(target, direct).run(module);
  const int64_t most = best.program.arena_bytes;
  std::optional<double> least_cycles;
  bool wanted = false;
  for (int tries = 0; tries < 2; ++tries) {
    PipelineResult result = PassRunner(target, way).run(module);
    const int64_t left = most - result.program.arena_bytes;
    wanted = wanted || filters(result);
    way.passes.winograd.room = result.notes.winograd.room + left - std::abs(left) / 16;
    const double cycles = winograd_cycles(result);
    if (left >= 0 && (!least_cycles || cycles < *least_cycles)) {
      best = std::move(result);
      least_cycles = cycles;
    }
    if (left == 0) break;
  }
  const int64_t state = best.program.state_bytes;
  if (!wanted || filters(best) || state == 0) return best;
  return run_within(module, target, options, most + state).value_or(std::move(best));
}

PipelineResult run_once(const Module& module, const TargetInfo& target,
                        const PipelineOptions& options) {
  const bool kept_small = options.passes.winograd.mode == WinogradMode::automatic &&
                          target.is_microcontroller() && !options.passes.ram &&
                          options.stop_after.empty();
  if (!kept_small) return PassRunner(target, options).run(module);
  // Who asks for speed gets no bands: their room would be the transforms'.
  PipelineOptions whole = options;
  whole.passes.bands = false;
  return within_direct_arena(module, target, whole);
}

}  // namespace

PipelineResult run_pipeline(const Module& module, const TargetInfo& target,
                            const PipelineOptions& options) {
  // The first that fits; each is slower than the one before.
  std::vector<PipelineOptions> ways{options};
  if (options.passes.winograd.mode == WinogradMode::automatic) {
    ways.push_back(ways.back());
    ways.back().passes.winograd.mode = WinogradMode::off;
  }
  if (options.passes.ram && target.is_microcontroller()) {
    ways.push_back(ways.back());
    ways.back().passes.whole = true;
  }
  if (!options.passes.frugal && has_loops(module)) {
    ways.push_back(ways.back());
    ways.back().passes.whole = false;
    ways.back().passes.frugal = true;
  }
  std::optional<DoesNotFit> nearest;
  for (const PipelineOptions& way : ways) {
    try {
      return run_once(module, target, way);
    } catch (const DoesNotFit& error) {
      if (!nearest || error.least < nearest->least) nearest = error;
    }
  }
  throw *nearest;
}

PipelineResult run_pipeline(const loop::Program& program, const TargetInfo& target,
                            const PipelineOptions& options) {
  return PassRunner(target, options).run(program);
}

}  // namespace backcast
