// Read this first: every pass appears here once, in order. run_pipeline.cpp runs them.
#include "passes/pipeline.h"

#include <fmt/ranges.h>

#include "passes/asked_passes.h"
#include "passes/graph/assign_layout.h"
#include "passes/graph/defer_sums.h"
#include "passes/graph/drop_constant_channels.h"
#include "passes/graph/factor.h"
#include "passes/graph/fixed_point.h"
#include "passes/graph/fold_repeats.h"
#include "passes/graph/fold_scale.h"
#include "passes/graph/inline_calls.h"
#include "passes/graph/integer_products.h"
#include "passes/graph/integer_sums.h"
#include "passes/graph/keep_positions.h"
#include "passes/graph/keep_products.h"
#include "passes/graph/lift_rows.h"
#include "passes/graph/promote.h"
#include "passes/graph/requantise.h"
#include "passes/graph/round_parts.h"
#include "passes/graph/scatter_updates.h"
#include "passes/graph/simplify.h"
#include "passes/graph/sink_constants.h"
#include "passes/graph/tabulate.h"
#include "passes/lower/example_loops.h"
#include "passes/lower/fold_constants.h"
#include "passes/lower/fuse.h"
#include "passes/lower/join_updates.h"
#include "passes/lower/lower.h"
#include "passes/lower/part_constants.h"
#include "passes/lower/place_copies.h"
#include "passes/lower/place_parts.h"
#include "passes/lower/recompute_maps.h"
#include "passes/lower/row_bands.h"
#include "passes/plan/fit_bands.h"
#include "passes/plan/fit_memory.h"
#include "passes/plan/order_steps.h"
#include "passes/plan/plan_memory.h"
#include "passes/plan/rematerialize.h"
#include "passes/plan/update_in_place.h"
#include "passes/schedule/drop_unused.h"
#include "passes/schedule/flush_subnormals.h"
#include "passes/schedule/fold_loops.h"
#include "passes/schedule/halve_weights.h"
#include "passes/schedule/narrow_constants.h"
#include "passes/schedule/order_constants.h"
#include "passes/schedule/order_state.h"
#include "passes/schedule/pair_products.h"
#include "passes/schedule/parallelize.h"
#include "passes/schedule/serpentine.h"
#include "passes/schedule/skip_unchanged.h"
#include "passes/schedule/store_words.h"
#include "passes/schedule/sum_slices.h"
#include "passes/schedule/turn_operands.h"
#include "passes/schedule/word_registers.h"

namespace backcast {
namespace {

// Passes with options of their own.

/// Hosts read weights once for all trips; microcontrollers would need room for all rows.
Module lift_rows_pass(const Module& module, const PassContext& context) {
  return lift_rows(module, !context.target.is_microcontroller());
}

/// Nothing learns any more: what does, training has made f32.
Module promote_halves_pass(const Module& module, const PassContext&) {
  return promote_halves(module);
}

Module keep_products_pass(const Module& module, const PassContext& context) {
  return context.options.frugal ? module : keep_products(module);
}

Module defer_sums_pass(const Module& module, const PassContext& context) {
  return defer_sums(module, context.options.frugal);
}

/// What the passes behind the choice of bands make of a program; `again`: of which some is computed
/// again.
loop::Program planned(const loop::Program& program, const PassContext& context, bool again) {
  PassOptions options = context.options;
  options.progress = {};
  options.weighed = !options.ram;  // what is held against a budget is placed as what is emitted
  PassNotes ignored;
  loop::Program result = program;
  bool behind = false;
  for (const LoopPass& pass : loop_passes()) {
    if (behind && (again || pass.name != "rematerialize")) {
      result = pass.run(result, {context.target, options, ignored});
    }
    behind = behind || pass.name == "row_bands";
  }
  return result;
}

loop::Program fuse_pass(const loop::Program& program, const PassContext& context) {
  return fuse(program, context.target);
}

loop::Program example_loops_pass(const loop::Program& program, const PassContext& context) {
  if (!context.options.bands) return program;
  return example_loops(program, context.target, &context.notes.examples);
}

loop::Program row_bands_pass(const loop::Program& program, const PassContext& context) {
  const PassOptions& options = context.options;
  std::string& note = context.notes.bands;
  const Planned once = [&](const loop::Program& p) { return planned(p, context, false); };
  const Planned again = [&](const loop::Program& p) { return planned(p, context, true); };
  if (options.whole) return program;
  if (options.ram) return fit_bands(program, context.target, *options.ram, once, &note);
  if (!options.bands) return program;
  if (!context.target.is_microcontroller()) return row_bands(program, context.target);
  return worthwhile_bands(program, context.target, {once, again}, &note);
}

/// For a cache so small that examples which people can read have bands.
loop::Program narrow_bands_pass(const loop::Program& program, const PassContext& context) {
  return row_bands(program, BandCosts{4096, 48, 6, 0, 32}, borders_for(context.target));
}

Module drop_channels_pass(const Module& module, const PassContext& context) {
  if (!context.options.inputs && !sums_integers(module)) return module;
  InputBounds nothing;
  nothing.known = false;
  return drop_constant_channels(simplify(module), context.options.inputs.value_or(nothing),
                                &context.notes.dropped, channel_units(context.target));
}

/// Behind everything that looks at the model as a whole; what is kept lies as its readers want it.
Module stream_pass(const Module& module, const PassContext& context) {
  const std::optional<StreamOptions>& options = context.options.stream;
  if (!options) return module;
  // Loops may be left with one trip.
  return simplify(inline_calls(stream(module, *options, &context.notes.stream)));
}

template <WinogradMode mode>
loop::Program winograd_pass(const loop::Program& program, const PassContext& context) {
  return winograd(program, context.target, {.mode = mode}, &context.notes.winograd);
}

loop::Program chosen_winograd_pass(const loop::Program& program, const PassContext& context) {
  return winograd(program, context.target, context.options.winograd, &context.notes.winograd);
}

loop::Program order_state_pass(const loop::Program& program, const PassContext& context) {
  return order_state(program, context.target, context.options.schedule.skip_zeros);
}

/// Copies take room.
loop::Program turn_operands_pass(const loop::Program& program, const PassContext& context) {
  return context.options.ram ? program : turn_operands(program, context.target);
}

loop::Program schedule_pass(const loop::Program& program, const PassContext& context) {
  return schedule(program, context.target, context.options.schedule, &context.notes.skipping);
}

loop::Program rematerialize_pass(const loop::Program& program, const PassContext& context) {
  std::string& note = context.notes.recomputation;
  if (context.options.ram) return fit_memory(program, context.target, *context.options.ram, &note);
  Recomputation done;
  loop::Program result = rematerialize(program, context.target, &done);
  if (done.values > 0) note = done.to_string();
  return result;
}

loop::Program plan_memory_pass(const loop::Program& program, const PassContext& context) {
  const auto tell = [&](int64_t nodes, int64_t reached, int64_t bound) {
    if (!context.options.progress) return;
    context.options.progress(
        fmt::format("placing buffers: {} bytes reached, at least {} needed, {} placements tried",
                    reached, bound, nodes));
  };
  const bool weighed = context.options.weighed;
  return plan_memory(program, context.target, tell,
                     weighed ? PlacementSearch::brief : PlacementSearch::full);
}

}  // namespace

const std::vector<GraphPass>& graph_passes() {
  static const std::vector<GraphPass> passes{
      // One function without calls, so that every later pass sees all there is.
      {"inline_calls", inline_calls},
      // Half floats are what memory holds; arithmetic is in single precision.
      {"promote_halves", promote_halves_pass},
      // Loops know the quantised weights that they are handed.
      {"sink_constants", sink_constants},
      // Products of quantised operands are products of integers.
      {"integer_products", integer_products},
      // So are their sums.
      {"integer_sums", integer_sums},
      // Constants, common subexpressions, algebra.
      {"simplify", simplify},
      // What is joined to be rounded is rounded before.
      {"round_parts", round_parts},
      // Rows that a loop looks up one by one are scanned, and multiplied in front of it.
      {"lift_rows", lift_rows_pass},
      // What is rounded between products of integers needs few operations.
      {"requantise", requantise},
      // A loop backwards reads products that the loop forwards had.
      {"keep_products", keep_products_pass},
      // Gradients of what every trip of a loop reads are one product behind the loop.
      {"defer_sums", defer_sums_pass},
      // What a derivative is multiplied by becomes one tensor of the forward pass.
      {"factor", factor},
      // A table is updated where it was looked up, without a gradient of its size.
      {"scatter_updates", scatter_updates},
      // Batch normalisation and its like disappear into weights.
      {"fold_scale", fold_scale},
      // Convolutions see what nearest neighbours repeat once.
      {"fold_repeats", fold_repeats},
      // Channels that no input within a promised range changes, or, of integers, no input at all.
      {"drop_constant_channels", drop_channels_pass},
      // Poolings remember positions, not their operands.
      {"keep_positions", keep_positions},
      // Channels last; transposes go to where they cancel.
      {"assign_layout", assign_layout},
      {"simplify_again", simplify},
      // Sequences come piece by piece.
      {"stream", stream_pass},
      // Scalar cores look up what is a function of one small integer.
      {"tabulate", tabulate},
      // Where floats are subroutines, what is rounded between products is, too, a product.
      {"fixed_point", fixed_point},
  };
  return passes;
}

const std::vector<LoopPass>& loop_passes() {
  static const std::vector<LoopPass> passes{
      // What the backward pass makes again of what is kept anyway, in the kernels that read it.
      {"recompute_maps", recompute_maps},
      // Definitions swallow their producers and epilogues: what is left are the kernels.
      {"fuse", fuse_pass},
      // What is computed of constants is one, if that takes little more room.
      {"fold_constants", fold_constants},
      // What is packed for its reader is a constant of its own.
      {"part_constants", part_constants},
      // Loops and branches compute their results in place.
      {"place_copies", place_copies},
      // Parameters are trained where they are.
      {"update_in_place", update_in_place},
      // A matrix that a product reads is updated in the same pass over it.
      {"join_updates", join_updates},
      // What treats the examples of a batch apart takes one after the other.
      {"example_loops", example_loops_pass},
      // Convolutions with fewer multiplications, where that pays.
      {"winograd", chosen_winograd_pass},
      // What is trained lies as its kernels read and write it.
      {"order_state", order_state_pass},
      // Chains with tensors too large for the near cache run band by band.
      {"row_bands", row_bands_pass},
      // Sums over a whole batch go image by image where the second cache holds no more.
      {"sum_slices", sum_slices},
      // Concatenated tensors are computed where they are read together.
      {"place_parts", place_parts},
      // Products of small integers go by pairs where the target adds those up.
      {"pair_products", pair_products},
      // Four words at a time where the target adds up the products of whole registers.
      {"word_registers", word_registers},
      // Elsewhere, weights of 4 bits are two to a byte.
      {"halve_weights", halve_weights},
      // Few small integers side by side are written as a word.
      {"store_words", store_words},
      // Integer constants are no wider than they need be.
      {"narrow_constants", narrow_constants},
      // Windows find channels along vectors.
      {"turn_operands", turn_operands_pass},
      // Constants of products with few results lie along their sums.
      {"order_constants", order_constants},
      // Register tiles, vectors, packed constants.
      {"schedule", schedule_pass},
      // Rows that an update leaves as they are.
      {"skip_unchanged", skip_unchanged},
      // Loops of one elementwise kernel go inside of it.
      {"fold_loops", fold_loops},
      // The originals of packed constants.
      {"drop_unused", drop_unused},
      // Cheap values that would lie idle at the peak of training are computed again.
      {"rematerialize", rematerialize_pass},
      // What the target has no instruction for becomes calls of the math library.
      {"legalize", legalize},
      // Ranges of iterations for a caller's parallel_for.
      {"parallelize", parallelize},
      // Weights that loops read again are still in the cache.
      {"serpentine", serpentine},
      // Equal kernels, one body.
      {"share_kernels", share_kernels},
      // Subnormal numbers cost nothing.
      {"flush_subnormals", flush_subnormals},
      // The order of steps that needs the least memory.
      {"order_steps", order_steps},
      // Every arena buffer gets its place.
      {"plan_memory", plan_memory_pass},
  };
  return passes;
}

namespace {

/// Forms of a pass that only somebody who names them gets.
const std::vector<LoopPass>& variants() {
  static const std::vector<LoopPass> passes{
      {"winograd_f2", winograd_pass<WinogradMode::f2>},
      {"winograd_f4", winograd_pass<WinogradMode::f4>},
      {"narrow_bands", narrow_bands_pass},
  };
  return passes;
}

}  // namespace

void fail_unknown_pass(std::string_view name, const std::vector<std::string>& known) {
  throw CompileError(
      fmt::format("unknown pass \"{}\"; the passes are {}", name, fmt::join(known, ", ")));
}

std::vector<std::string> pass_names() {
  std::vector<std::string> names;
  for (const GraphPass& pass : graph_passes()) names.emplace_back(pass.name);
  names.emplace_back("lower");
  for (const LoopPass& pass : loop_passes()) names.emplace_back(pass.name);
  return names;
}

void run_pass(PipelineResult& reached, std::string_view name, const TargetInfo& target,
              const std::string& program_name) {
  const auto need = [&](bool lowered) {
    if (reached.lowered == lowered) return;
    throw CompileError(lowered ? fmt::format("pass {} needs loop IR: run lower first", name)
                               : fmt::format("pass {} needs graph IR", name));
  };
  const PassOptions by_itself{.inputs = InputBounds{},
                              .winograd = {.mode = WinogradMode::automatic}};
  const PassContext context{target, by_itself, reached.notes};
  if (is_asked_pass(name)) {
    need(false);
    reached.module = run_asked_pass(reached.module, std::string(name));
    return;
  }
  for (const GraphPass& pass : graph_passes()) {
    if (pass.name != name) continue;
    need(false);
    reached.module = pass.run(reached.module, context);
    return;
  }
  for (const std::vector<LoopPass>* passes : {&loop_passes(), &variants()}) {
    for (const LoopPass& pass : *passes) {
      if (pass.name != name) continue;
      need(true);
      reached.program = pass.run(reached.program, context);
      return;
    }
  }
  if (name != "lower") fail_unknown_pass(name, pass_names());
  need(false);
  reached.program = lower(reached.module, program_name);
  reached.lowered = true;
}

}  // namespace backcast
