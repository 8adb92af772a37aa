#include "passes/schedule/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "ir/graph/error.h"
#include "ir/loop/add.h"
#include "ir/loop/step_access.h"
#include "ir/loop/visit.h"
#include "passes/lower/definition_cost.h"
#include "passes/schedule/affine.h"
#include "passes/schedule/choose.h"
#include "passes/schedule/factor_sums.h"
#include "passes/schedule/fetch_ahead.h"
#include "passes/schedule/fetch_operands.h"
#include "passes/schedule/follow_reads.h"
#include "passes/schedule/join_loops.h"
#include "passes/schedule/known_calls.h"
#include "passes/schedule/operand_blocks.h"
#include "passes/schedule/panel.h"
#include "passes/schedule/partition.h"
#include "passes/schedule/read_apart.h"
#include "passes/schedule/reduction_blocks.h"
#include "passes/schedule/row_blocks.h"
#include "passes/schedule/side_buffers.h"
#include "passes/schedule/split_sums.h"
#include "passes/schedule/stage.h"
#include "passes/schedule/symbolic_strips.h"
#include "passes/schedule/vector_loops.h"
#include "passes/schedule/zero_skipping.h"

namespace backcast {
namespace {

using loop::Buffer;
using loop::BufferId;
using loop::Definition;
using loop::Kernel;
using loop::Program;
using loop::Step;
using loop::Stmt;
using loop::StmtKind;

class Scheduling {
 public:
  Scheduling(const Program& program, const TargetInfo& target, const ScheduleOptions& options)
      : target_(target),
        result_(program),
        beside_(result_, target),
        known_(result_),
        constant_bytes_(loop::constant_bytes(program)),
        holds_nibbles_(constant_bytes_ > target.l2_bytes) {
    panels_ = options.threads == 1 || target.parallel_grain == 0;
    if (options.skip_zeros) skipping_zeros_.emplace(result_, target);
  }

  Program run() {
    loop::separate_calls(result_);
    for (loop::EntryPoint& entry : result_.entries) {
      trains_ = loop::writes_state(result_, entry);
      schedule_steps(entry.steps);
    }
    return std::move(result_);
  }

  const std::vector<Loc>& skipping() const { return skipping_; }

 private:
  void schedule_steps(std::vector<Step>& steps) {
    std::vector<Step> scheduled;
    for (Step& step : steps) {
      schedule_steps(step.body);
      schedule_steps(step.otherwise);
      before_.clear();
      if (step.kind == loop::StepKind::call) schedule_once(step);
      for (Step& earlier : before_) scheduled.push_back(std::move(earlier));
      scheduled.push_back(std::move(step));
    }
    steps = std::move(scheduled);
  }

  void schedule_once(Step& step) {
    const std::string key = key_of(step);
    if (known_.repeat(key, step)) return;
    const Step called = step;
    const Kernel kernel = result_.kernels.at(step.kernel);
    schedule_step(step);
    if (before_.empty()) known_.remember(key, kernel, called, step);
  }

  /// All that a call's schedule depends on.
  std::string key_of(const Step& step) const {
    std::string key = KnownCalls::text_of(result_, step) + (trains_ ? " trains" : "");
    for (const BufferId id : step.buffers) {
      key += skipping_zeros_ && skipping_zeros_->is_rectified(id) ? '+' : '-';
    }
    return key;
  }

  void schedule_step(Step& step) {
    Kernel& kernel = result_.kernels.at(step.kernel);
    int definitions = 0;
    std::set<std::string> taken;
    loop::visit(
        kernel.body,
        [&](const Stmt& s) {
          definitions += s->kind == StmtKind::define;
          if (!s->name.empty()) taken.insert(s->name);
        },
        nullptr);
    const bool among_statements = std::exchange(among_statements_, !taken.empty());
    const bool alone = definitions == 1 && !among_statements_;
    size_t parameters = kernel.buffers.size();
    if (Stmt joined = expand_joined(kernel, step, taken)) kernel.body = joined;
    kernel.body = loop::rewrite(kernel.body, nullptr, [&](const Stmt& stmt) -> Stmt {
      if (stmt->kind != StmtKind::define) return stmt;
      return expand_definition(*stmt->definition, kernel, step, alone, taken);
    });
    among_statements_ = among_statements;
    kernel.body = expand_vector_loops(kernel.body, target_);
    kernel.body = loop::simplify(kernel.body, result_.symbols);
    if (kernel.buffers.size() > parameters) loop::drop_unread(kernel, step);
  }

  /// A product and an update of what it reads (join_updates.h) in one nest; null for other kernels
  /// and where that cannot be.
  Stmt expand_joined(Kernel& kernel, Step& step, std::set<std::string>& taken) {
    const Stmt body = kernel.body;
    if (body->kind != StmtKind::block || body->body.size() != 2) return {};
    for (const Stmt& part : body->body) {
      if (part->kind != StmtKind::define) return {};
    }
    const Definition& product = *body->body[0]->definition;
    const Definition& update = *body->body[1]->definition;
    if (product.accumulators.empty() || !update.accumulators.empty()) return {};
    const Stmt nest = expand_definition(product, kernel, step, false, taken);
    const Stmt joined = follow_reads(nest, update, kernel);
    return joined ? joined : loop::block({nest, body->body[1]});
  }

  Stmt expand_definition(const Definition& definition, Kernel& kernel, Step& step, bool alone,
                         std::set<std::string>& taken) {
    if (alone && !definition.accumulators.empty()) {
      if (std::optional<Definition> apart = parted(definition, kernel, step)) {
        return expand_definition(*apart, kernel, step, alone, taken);
      }
    }
    std::vector<Definition> parts =
        definition.accumulators.empty() ? partition(definition) : phases(definition);
    if (!definition.accumulators.empty() && parts.size() > 1 && !among_statements_) {
      if (std::optional<Definition> copied = copy_operand(definition, kernel, step)) {
        parts = phases(*copied);
      }
    }
    if (!definition.accumulators.empty() && parts.size() == 1 && !among_statements_) {
      parts = parts_of_results(parts[0], kernel, step);
    }
    if (alone && parts.size() == 1) {
      coalesce(parts[0], kernel);
      const std::string axis = scattered_axis(parts[0], kernel, step);
      if (!axis.empty()) {
        if (Stmt nests = sum_in_blocks(parts[0], axis, kernel, step, taken)) return nests;
        const Definition rest = sum_before(parts[0], axis, kernel, step);
        return expand_definition(rest, kernel, step, alone, taken);
      }
    }
    parts = in_strips(parts, kernel, step);
    std::vector<Stmt> nests;
    for (const Definition& part : parts) {
      nests.push_back(loop::with_unique_names(
          expand_one(part, kernel, step, alone && parts.size() == 1), taken));
    }
    if (parts.size() == 1 || among_statements_) return loop::block(nests);
    for (Stmt& nest : nests) nest = loop::simplify(nest, result_.symbols);
    return join_loops(nests, kernel, target_);
  }

  NestSchedule choose(const Definition& definition, const Kernel& kernel, const Step& step,
                      TileLimits limits = {}) const {
    limits.even = holds_nibbles_ && beside_.reads_nibbles(kernel, step);
    return choose_schedule(definition, kernel, target_, constants_of(kernel, step),
                           !among_statements_, limits);
  }

  /// See symbolic_strips.h.
  std::vector<Definition> in_strips(const std::vector<Definition>& whole, const Kernel& kernel,
                                    const Step& step) const {
    std::vector<Definition> parts;
    for (const Definition& part : whole) {
      const auto strips = symbolic_strips(part, [&](const Definition& d) {
        return choose_schedule(d, kernel, target_, constants_of(kernel, step), false);
      });
      parts.insert(parts.end(), strips.begin(), strips.end());
    }
    return parts;
  }

  /// Sums whose results are conditional, such as channels that a shortcut lacks, cut where that is
  /// faster: a vector of results takes one side.
  std::vector<Definition> parts_of_results(const Definition& definition, const Kernel& kernel,
                                           const Step& step) const {
    constexpr size_t kMostParts = 3;
    std::vector<Definition> parts = partition(definition);
    if (parts.size() == 1 || parts.size() > kMostParts) return {definition};
    const auto cycles = [&](const Definition& d) {
      return schedule_cycles(d, kernel, target_, constants_of(kernel, step), true);
    };
    double apart = 0;
    for (const Definition& part : parts) apart += cycles(part);
    return apart < cycles(definition) ? parts : std::vector<Definition>{definition};
  }

  /// Which parameters of a call are constants; both must outlive it.
  std::function<bool(const std::string&)> constants_of(const Kernel& kernel,
                                                       const Step& step) const {
    return [this, &kernel, &step](const std::string& param) {
      return loop::passes_constant(result_, kernel, step, param);
    };
  }

  /// See read_apart.h: the definition over the kernel's new parameters, if that is faster.
  std::optional<Definition> parted(const Definition& definition, Kernel& kernel, Step& step) const {
    std::optional<ReadApart> apart = read_apart(definition, kernel, constants_of(kernel, step));
    if (!apart) return std::nullopt;
    Kernel wider = kernel;
    Step call = step;
    for (size_t i = 0; i < apart->parameters.size(); ++i) {
      wider.buffers.push_back(apart->parameters[i]);
      call.buffers.push_back(loop::buffer_of(kernel, step, apart->sources[i]));
    }
    const auto cycles = [&](const Definition& d, const Kernel& k, const Step& s) {
      return schedule_cycles(d, k, target_, constants_of(k, s), !among_statements_);
    };
    if (cycles(apart->definition, wider, call) >= cycles(definition, kernel, step)) {
      return std::nullopt;
    }
    kernel.buffers = std::move(wider.buffers);
    step = std::move(call);
    return std::move(apart->definition);
  }

  // ---- kernels that run before

  static loop::BufferParam written(const std::string& name, loop::Scalar element,
                                   const Dims& shape) {
    return {name, element, shape, loop::AccessMode::write, {}};
  }

  /// See SideBuffers::compute_before.
  void compute_before(Stmt body, const std::vector<loop::BufferParam>& reads,
                      const loop::BufferParam& written, int64_t macs, Kernel& kernel, Step& step) {
    Step call = beside_.compute_before(std::move(body), reads, written, macs, kernel, step);
    schedule_step(call);
    before_.push_back(std::move(call));
  }

  void compute_before(Definition definition, const loop::BufferParam& written, int64_t macs,
                      Kernel& kernel, Step& step) {
    std::vector<loop::BufferParam> reads;
    for_each_access(definition, [&](const loop::ExprNode& read, bool) {
      const bool known = std::any_of(reads.begin(), reads.end(),
                                     [&](const auto& param) { return param.name == read.name; });
      if (!known) reads.push_back(*kernel.find(read.name));
    });
    compute_before(loop::define(std::move(definition)), reads, written, macs, kernel, step);
  }

  /// For a definition of several phases: an operand that they would rearrange one by one is copied
  /// once. Returns the definition over the copy.
  std::optional<Definition> copy_operand(const Definition& definition, Kernel& kernel, Step& step) {
    NestSchedule chosen = choose(definition, kernel, step);
    for (const auto& [param, packing] : chosen.packed) {
      if (!packing.at_run_time) continue;
      std::string parameter = SideBuffers::fresh_parameter(kernel, param);
      Staged staged = stage_operand(definition, chosen, param, parameter);
      compute_before(std::move(staged.first),
                     written(parameter, kernel.find(param)->element, staged.shape), 0, kernel,
                     step);
      return staged.second;
    }
    return std::nullopt;
  }

  /// The axis along which vectors would scatter results after a short reduction, or could not read
  /// what stands beside the sum; empty when they do neither.
  std::string scattered_axis(const Definition& definition, const Kernel& kernel,
                             const Step& step) const {
    // Longer sums hide the stores.
    constexpr int64_t kShort = 512, kLong = kCollidingStore * kShort;
    if (target_.vector_bits == 0 || definition.accumulators.size() != 1 ||
        definition.outputs.size() != 1)
      return "";
    int64_t steps = 1;
    for (const loop::Axis& axis : definition.reduce_axes) {
      steps *= static_extent(axis).value_or(kLong + 1);
    }
    const loop::DefinitionOutput& output = definition.outputs[0];
    loop::Expr flat = loop::flat_index(kernel.find(output.buffer)->shape, output.indices);
    for (const loop::Axis& axis : definition.axes) {
      if (!static_extent(axis) || !coefficient(flat, axis.name)) return "";
    }
    if (definition.reduce_axes.empty()) return "";
    NestSchedule chosen = choose(definition, kernel, step);
    if (!chosen.has_vectors() && looks_up(definition)) {
      const NestSchedule bare = choose(sum_alone(definition), kernel, step);
      return bare.has_vectors() ? bare.vector_axis : "";
    }
    if (steps > kLong || !chosen.has_vectors() || coefficient(flat, chosen.vector_axis) == 1) {
      return "";
    }
    // Beside packed operands, storing elements one by one is bearable unless their lines collide.
    const int64_t pitch = *coefficient(flat, chosen.vector_axis) *
                          byte_size(loop::element_of(definition.accumulators[0].type.scalar));
    const bool bearable = holds_lines(chosen.vector_segments[0].width(), pitch, target_);
    return bearable && (steps > kShort || !chosen.packed.empty()) ? "" : chosen.vector_axis;
  }

  /// Without what its only output makes of the sum.
  static Definition sum_alone(const Definition& definition) {
    Definition result = definition;
    const loop::Accumulator& acc = definition.accumulators[0];
    result.outputs[0].value = loop::var(acc.name, acc.type);
    return result;
  }

  /// The nest that leaves out steps whose factor is zero; null where that does not pay.
  Stmt skip_zeros(const Definition& definition, Kernel& kernel, Step& step, bool alone) {
    if (!skipping_zeros_) return {};
    const std::optional<SkippingNest> nest =
        skipping_zeros_->choose(definition, kernel, step, trains_, !among_statements_);
    if (!nest) return {};
    if (!kernel.locs.empty()) skipping_.push_back(kernel.locs.front());
    return expand_nest(nest->definition, nest->schedule, kernel, step, alone);
  }

  /// Results that vectors would scatter along `axis` are summed into a buffer first. Returns what
  /// is left.
  Definition sum_before(const Definition& definition, const std::string& axis, Kernel& kernel,
                        Step& step) {
    std::string parameter = SideBuffers::fresh_parameter(kernel, "sum");
    Staged staged = stage_sums(definition, kernel, axis, parameter);
    const loop::Scalar sum = definition.accumulators[0].type.scalar;
    compute_before(std::move(staged.first), written(parameter, sum, staged.shape), kernel.macs,
                   kernel, step);
    kernel.macs = 0;
    return staged.second;
  }

  /// The same by blocks inside of the kernel, when there are many results; null otherwise.
  Stmt sum_in_blocks(const Definition& definition, const std::string& axis, Kernel& kernel,
                     Step& step, std::set<std::string>& taken) {
    if (!panels_) return {};
    const std::string parameter = SideBuffers::fresh_parameter(kernel, "sum");
    const loop::Scalar scalar = definition.accumulators[0].type.scalar;
    const std::optional<StagedBlocks> cut =
        cut_sums(stage_sums(definition, kernel, axis, parameter), axis, parameter,
                 byte_size(loop::element_of(scalar)));
    if (!cut) return {};
    beside_.add_panel(parameter, scalar, cut->staged.shape, kernel, step);
    Definition first = flattened(cut->staged.first, kernel), second = cut->staged.second;
    if (!coalesce(second, kernel)) first = cut->staged.first;
    taken.insert(cut->variable);
    const Stmt sum = expand_definition(first, kernel, step, false, taken);
    const Stmt use = expand_definition(second, kernel, step, false, taken);
    return loop::for_loop(cut->variable, loop::Expr(0), loop::Expr(cut->count),
                          loop::block({sum, use}));
  }

  /// The definitions that fill panels become nests.
  Stmt expand_panels(const Stmt& nest, const NestSchedule& chosen, const Kernel& kernel,
                     const Step& step) {
    const bool panels = std::any_of(chosen.packed.begin(), chosen.packed.end(),
                                    [](const auto& item) { return item.second.in_panel; });
    if (!panels) return nest;
    Kernel flat = kernel;  // panels are filled from operands seen with one dimension
    for (loop::BufferParam& param : flat.buffers) {
      if (!chosen.packed.count(param.name)) continue;
      param.shape = {TensorType{ElementType::f32, param.shape}.element_count()};
    }
    std::set<std::string> taken;
    return loop::rewrite(nest, nullptr, [&](const Stmt& stmt) -> Stmt {
      if (stmt->kind != StmtKind::define) return stmt;
      Step unchanged = step;
      return expand_definition(*stmt->definition, flat, unchanged, false, taken);
    });
  }

  /// `alone`: nothing else in the kernel reads its buffers.
  Stmt expand_one(const Definition& definition, Kernel& kernel, Step& step, bool alone) {
    NestSchedule chosen = choose(definition, kernel, step);
    if (!chosen.transposed_axis.empty() && !definition.accumulators.empty()) {
      return expand_one(without_accumulators(definition), kernel, step, alone);
    }
    if (Stmt nest = skip_zeros(definition, kernel, step, alone)) return nest;
    if (alone) {
      if (const auto cut = cut_reduction(definition, kernel, chosen, result_.symbols, target_)) {
        const std::string totals = SideBuffers::fresh_parameter(kernel, "sum");
        NestSchedule in_blocks = choose(cut->definition, kernel, step);
        if (order_blocks(in_blocks, *cut, totals)) {
          const loop::Scalar scalar = definition.accumulators[0].type.scalar;
          beside_.add_panel(totals, scalar, {Dim(cut->totals)}, kernel, step);
          return expand_nest(cut->definition, in_blocks, kernel, step, alone);
        }
      }
      const auto choose_block = [&](const Definition& d) { return choose(d, kernel, step); };
      auto cut = cut_operands(definition, kernel, chosen, target_, choose_block);
      if (!cut) cut = cut_rows(definition, kernel, chosen, target_);
      if (cut) {
        cut->schedule.totals = SideBuffers::fresh_parameter(kernel, "sum");
        const loop::Scalar scalar = definition.accumulators[0].type.scalar;
        beside_.add_panel(cut->schedule.totals, scalar, {Dim(cut->totals)}, kernel, step);
        return expand_nest(cut->definition, cut->schedule, kernel, step, alone);
      }
    }
    if (panels_) pack_in_panels(chosen, definition);
    return expand_nest(definition, chosen, kernel, step, alone);
  }

  Stmt expand_nest(const Definition& definition, NestSchedule chosen, Kernel& kernel, Step& step,
                   bool alone) {
    if (chosen.taken.axes.empty()) {
      chosen.fetched = constant_to_fetch(definition, chosen, constant_bytes_, target_);
      chosen.fetches = choose_fetches(definition, kernel, chosen, target_);
      const auto within = [&](const TileLimits& limits) {
        return choose(definition, kernel, step, limits);
      };
      split_sums(definition, kernel, target_, within, chosen);
      factor_sums(definition, target_, chosen);
    }
    if (holds_nibbles_) beside_.hold_nibbles(kernel, step, chosen);
    for (auto& [param, packing] : chosen.packed) {
      if (packing.at_run_time || !alone)
        packing.parameter = SideBuffers::fresh_parameter(kernel, param);
    }
    Stmt nest = expand(definition, kernel, chosen);
    for (const auto& [param, packing] : chosen.packed) {
      if (packing.in_panel) {
        beside_.add_panel(packing.parameter, kernel.find(param)->element,
                          {Dim(panel_count(chosen, param))}, kernel, step);
        continue;
      }
      if (packing.at_run_time) {
        pack_before(definition, chosen, param, kernel, step);
      } else {
        beside_.pack_constant(definition, chosen, param, kernel, step);
      }
    }
    return expand_panels(nest, chosen, kernel, step);
  }

  /// A kernel of its own that rearranges the operand.
  void pack_before(const Definition& definition, const NestSchedule& chosen,
                   const std::string& param, Kernel& kernel, Step& step) {
    loop::BufferParam source = *kernel.find(param);
    source.shape = {TensorType{ElementType::f32, source.shape}.element_count()};
    const std::string& parameter = chosen.packed.at(param).parameter;
    compute_before(repack(definition, kernel, chosen, param, parameter), {source},
                   written(parameter, source.element, {Dim(packed_count(chosen, param))}), 0,
                   kernel, step);
  }

  const TargetInfo& target_;
  Program result_;
  SideBuffers beside_;
  KnownCalls known_;
  bool panels_ = true;                          // may operands and sums go through
  std::optional<ZeroSkipping> skipping_zeros_;  // nothing where they are not to be left out
  std::vector<Loc> skipping_;                   // the nodes that leave them out
  bool trains_ = false;                         // the entry point under way
  int64_t constant_bytes_ = 0;
  /// Caches that hold all constants as they are have them more quickly.
  bool holds_nibbles_ = false;
  bool among_statements_ = false;  // what stands there can have no kernel run before it
  std::vector<Step> before_;       // rearrange what the step under way reads
};

}  // namespace

Program schedule(const Program& program, const TargetInfo& target, const ScheduleOptions& options,
                 std::vector<Loc>* skipping) {
  Scheduling scheduling(program, target, options);
  Program result = scheduling.run();
  if (skipping) *skipping = scheduling.skipping();
  return result;
}

}  // namespace backcast
