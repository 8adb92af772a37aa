// One walk over the steps in order. Each step first takes in its producers' definitions (inline),
// then, if it is elementwise, merges into the reduction that feeds it (epilogue).
#include "passes/lower/fuse.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "ir/loop/liveness.h"
#include "ir/loop/step_access.h"
#include "ir/loop/text.h"
#include "ir/loop/visit.h"
#include "passes/lower/definition_cost.h"

namespace backcast {
namespace {

using loop::AccessMode;
using loop::Buffer;
using loop::BufferClass;
using loop::BufferId;
using loop::BufferParam;
using loop::Definition;
using loop::DefinitionOutput;
using loop::Expr;
using loop::ExprKind;
using loop::Kernel;
using loop::Program;
using loop::Step;

// Larger kernels gain nothing and cost the compilers time.
constexpr int64_t kMaxCost = 48;
constexpr size_t kMaxParams = 24;

/// A step whose kernel is one definition with one output, with buffers named by id.
struct Unit {
  Definition definition;  // accesses are named "b<BufferId>"
  std::vector<Loc> locs;
  std::vector<std::string> sizes;
  int64_t macs = 0;
  bool is_map() const { return definition.accumulators.empty(); }
  BufferId output() const { return std::stoi(definition.outputs[0].buffer.substr(1)); }
};

std::string buffer_name(BufferId id) { return fmt::format("b{}", id); }
BufferId buffer_id(const std::string& name) { return std::stoi(name.substr(1)); }

/// Renames buffers of a definition.
Definition rename(const Definition& definition, const std::map<std::string, std::string>& names) {
  return *loop::rename_buffers(loop::define(definition), names)->definition;
}

/// Indices of an access to a view as indices of its base, when the two shapes differ only by
/// dimensions of extent 1.
std::optional<std::vector<Expr>> through_view(const std::vector<Expr>& indices, const Shape& view,
                                              const Shape& base) {
  std::vector<Expr> result;
  size_t v = 0;
  for (const Dim& extent : base) {
    if (extent == Dim(1)) {
      result.push_back(Expr(0));
      continue;
    }
    while (v < view.size() && view[v] == Dim(1)) ++v;
    if (v == view.size() || !(view[v] == extent)) return std::nullopt;
    result.push_back(indices[v++]);
  }
  while (v < view.size() && view[v] == Dim(1)) ++v;
  return v == view.size() ? std::optional(result) : std::nullopt;
}

bool is_identity(const Definition& definition) {
  const std::vector<Expr>& indices = definition.outputs[0].indices;
  if (indices.size() != definition.axes.size()) return false;
  for (size_t i = 0; i < indices.size(); ++i) {
    if (indices[i]->kind != ExprKind::var || indices[i]->name != definition.axes[i].name)
      return false;
  }
  return true;
}

class Fusion {
 public:
  explicit Fusion(const Program& program) : program_(program) {}

  Program run() {
    Program result = program_;
    for (size_t e = 0; e < program_.entries.size(); ++e)
      result.entries[e].steps = fuse_entry(program_.entries[e], result);
    return result;
  }

 private:
  std::vector<Step> fuse_entry(const loop::EntryPoint& entry, Program& result) {
    rewritten_.clear();
    std::map<BufferId, const std::vector<Step>*> writers;
    find_rewritten(entry.steps, writers);
    return fuse_steps(entry.steps, result);
  }

  /// What is written in two lists of steps (before a loop and in it, …) has no one producer.
  void find_rewritten(const std::vector<Step>& steps,
                      std::map<BufferId, const std::vector<Step>*>& writers) {
    for (const Step& step : steps) {
      if (step.body.empty() && step.otherwise.empty()) {
        for (BufferId id : loop::written_buffers(program_, step)) {
          if (writers.emplace(id, &steps).first->second != &steps) rewritten_.insert(id);
        }
      }
      find_rewritten(step.body, writers);
      find_rewritten(step.otherwise, writers);
    }
  }

  /// What loops and branches hold is fused for itself; from outside they only read and write.
  std::vector<Step> fuse_steps(const std::vector<Step>& from, Program& result) {
    std::vector<Step> inner = from;
    for (Step& step : inner) {
      step.body = fuse_steps(step.body, result);
      step.otherwise = fuse_steps(step.otherwise, result);
    }
    units_.clear();
    producer_.clear();
    dead_.clear();
    units_.resize(from.size());
    count_readers(from);
    for (size_t s = 0; s < from.size(); ++s) {
      units_[s] = make_unit(from[s]);
      if (!units_[s]) continue;
      inline_producers(s);
      merge_epilogue(s);
      if (rewritten_.count(program_.owner(units_[s]->output()))) continue;
      producer_[units_[s]->output()] = s;
    }
    std::vector<Step> to;
    for (size_t s = 0; s < from.size(); ++s) {
      if (dead_.count(s)) continue;
      to.push_back(units_[s] ? make_step(*units_[s], from[s], result) : std::move(inner[s]));
    }
    return to;
  }

  void count_readers(const std::vector<Step>& steps) {
    readers_.clear();
    for (size_t s = 0; s < steps.size(); ++s) {
      for (BufferId id : loop::read_buffers(program_, steps[s])) readers_[id].insert(s);
    }
  }

  /// Step `now` reads what `old` reads; `old` itself no longer does when it is gone.
  void move_reads(size_t old, size_t now, bool gone) {
    for_each_access(units_[old]->definition, [&](const loop::ExprNode& read, bool) {
      std::set<size_t>& readers = readers_[program_.owner(buffer_id(read.name))];
      readers.insert(now);
      if (gone) readers.erase(old);
    });
  }

  std::optional<Unit> make_unit(const Step& step) const {
    if (step.kind != loop::StepKind::call) return std::nullopt;
    const Kernel& kernel = program_.kernels.at(step.kernel);
    const Definition* definition = loop::only_definition(kernel);
    if (definition == nullptr || definition->outputs.size() != 1) return std::nullopt;
    std::map<std::string, std::string> names;
    for (size_t i = 0; i < kernel.buffers.size(); ++i) {
      names[kernel.buffers[i].name] = buffer_name(step.buffers[i]);
    }
    return Unit{rename(*definition, names), kernel.locs, kernel.sizes, kernel.macs};
  }

  /// The unit that writes the value an access reads and the access's indices in terms of the
  /// written buffer; nothing when a view in between changes more than unit dimensions.
  struct Source {
    size_t step;
    std::vector<Expr> indices;
  };
  std::optional<Source> source(const loop::ExprNode& read) const {
    BufferId id = buffer_id(read.name);
    std::vector<Expr> indices = read.args;
    while (true) {
      auto found = producer_.find(id);
      if (found != producer_.end()) return Source{found->second, indices};
      const Buffer& buffer = program_.buffer(id);
      if (buffer.view_of < 0 || !(buffer.view_offset == Dim(0))) return std::nullopt;
      std::optional<std::vector<Expr>> mapped =
          through_view(indices, buffer.shape, program_.buffer(buffer.view_of).shape);
      if (!mapped) return std::nullopt;
      indices = *mapped;
      id = buffer.view_of;
    }
  }

  // ---- inlining ---------------------------------------------------------------------------------

  void inline_producers(size_t s) {
    Unit& unit = *units_[s];
    for (int round = 0; round < 8; ++round) {
      std::set<size_t> wanted;
      for_each_access(unit.definition, [&](const loop::ExprNode& read, bool in_reduction) {
        std::optional<Source> from = source(read);
        if (from && worth_inlining(*units_[from->step], unit, in_reduction))
          wanted.insert(from->step);
      });
      if (wanted.empty()) return;
      Definition inlined = unit.definition;
      transform(inlined, [&](const Expr& e) -> Expr {
        if (e->kind != ExprKind::access) return e;
        std::optional<Source> from = source(*e);
        if (!from || !wanted.count(from->step)) return e;
        return value_at(units_[from->step]->definition, from->indices);
      });
      lift_guards(inlined);
      if (cost(inlined).total() > kMaxCost || params(inlined) > kMaxParams) return;
      unit.definition = std::move(inlined);
      for (size_t step : wanted) {
        adopt(unit, *units_[step]);
        std::set<size_t>& readers = readers_[program_.owner(units_[step]->output())];
        readers.erase(s);
        move_reads(step, s, readers.empty());
      }
    }
  }

  /// The producer's value at given indices.
  static Expr value_at(const Definition& producer, const std::vector<Expr>& indices) {
    std::map<std::string, Expr> values;
    for (size_t i = 0; i < producer.axes.size(); ++i) values[producer.axes[i].name] = indices[i];
    return loop::substitute(producer.outputs[0].value, values);
  }

  bool worth_inlining(const Unit& producer, const Unit& consumer, bool in_reduction) const {
    if (!producer.is_map() || !is_identity(producer.definition)) return false;
    if (program_.buffer(program_.owner(producer.output())).kind != BufferClass::arena) return false;
    DefinitionCost price = cost(producer.definition);
    if (price.indirect > 0 && in_reduction) return false;
    if (price.total() == 0) return true;
    if (readers_.at(program_.owner(producer.output())).size() > 1) return false;
    int64_t elements = points(producer.definition, program_.symbols);
    int64_t evaluations = points(consumer.definition, program_.symbols);
    return evaluations <= elements;
  }

  static void adopt(Unit& unit, const Unit& other) {
    for (const Loc& loc : other.locs) {
      if (std::find(unit.locs.begin(), unit.locs.end(), loc) == unit.locs.end()) {
        unit.locs.push_back(loc);
      }
    }
    std::set<std::string> sizes(unit.sizes.begin(), unit.sizes.end());
    sizes.insert(other.sizes.begin(), other.sizes.end());
    unit.sizes.assign(sizes.begin(), sizes.end());
  }

  // ---- epilogues --------------------------------------------------------------------------------

  void merge_epilogue(size_t s) {
    for (int round = 0; round < 4; ++round) {
      Unit& unit = *units_[s];
      if (!unit.is_map()) return;
      std::set<size_t> candidates;
      for_each_access(unit.definition, [&](const loop::ExprNode& read, bool) {
        std::optional<Source> from = source(read);
        if (from && !units_[from->step]->is_map()) candidates.insert(from->step);
      });
      bool merged = false;
      for (size_t p : candidates) merged = merged || try_merge(s, p);
      if (!merged) return;
    }
  }

  bool try_merge(size_t s, size_t p) {
    Unit& consumer = *units_[s];
    const Unit& producer = *units_[p];
    BufferId value = program_.owner(producer.output());
    if (program_.buffer(value).kind != BufferClass::arena ||
        readers_[value] != std::set<size_t>{s}) {
      return false;
    }
    // Every read must be at the same indices, and these must be exactly the consumer's axes.
    std::optional<std::vector<Expr>> at;
    bool same = true;
    for_each_access(consumer.definition, [&](const loop::ExprNode& read, bool) {
      std::optional<Source> from = source(read);
      if (!from) {
        same = same && program_.owner(buffer_id(read.name)) != value;
        return;
      }
      if (from->step != p) return;
      if (!at) at = from->indices;
      for (size_t i = 0; i < at->size(); ++i)
        same = same && loop::equal((*at)[i], from->indices[i]);
    });
    if (!at || !same) return false;
    std::map<std::string, Expr> axes;
    const std::vector<Expr>& written = producer.definition.outputs[0].indices;
    for (size_t i = 0; i < at->size(); ++i) {
      const Expr& index = (*at)[i];
      if (loop::is_constant(index, 0)) {
        if (!(program_.buffer(producer.output()).shape[i] == Dim(1))) return false;
        continue;
      }
      if (index->kind != ExprKind::var || axes.count(index->name)) return false;
      axes[index->name] = written[i];
    }
    for (size_t i = 0; i < consumer.definition.axes.size(); ++i) {
      const loop::Axis& axis = consumer.definition.axes[i];
      if (axes.count(axis.name)) continue;
      if (!loop::is_constant(axis.extent, 1)) return false;
      axes[axis.name] = Expr(0);
    }
    if (points(consumer.definition, program_.symbols) != elements(producer)) return false;

    Unit merged = producer;
    merged.definition.outputs = {
        consumer_in_producer_axes(consumer, axes, p, producer.definition.outputs[0].value)};
    if (cost(merged.definition).total() > kMaxCost || params(merged.definition) > kMaxParams) {
      return false;
    }
    adopt(merged, consumer);
    move_reads(p, s, true);
    dead_.insert(p);
    producer_.erase(producer.output());
    units_[s] = std::move(merged);
    return true;
  }

  DefinitionOutput consumer_in_producer_axes(const Unit& consumer,
                                             const std::map<std::string, Expr>& axes, size_t p,
                                             const Expr& result) const {
    DefinitionOutput output = consumer.definition.outputs[0];
    // Mark the reads of the producer's value before the axes are renamed.
    const std::string mark = "fused value";
    output.value = loop::rewrite(output.value, [&](const Expr& e) -> Expr {
      if (e->kind != ExprKind::access) return e;
      std::optional<Source> from = source(*e);
      return from && from->step == p ? loop::var(mark, e.type()) : e;
    });
    output.value = loop::substitute(output.value, axes);
    for (Expr& index : output.indices) index = loop::substitute(index, axes);
    output.value = loop::substitute(output.value, {{mark, result}});
    return output;
  }

  int64_t elements(const Unit& unit) const {
    return TensorType{ElementType::f32, program_.buffer(unit.output()).shape}
        .element_count()
        .range(program_.symbols)
        .max;
  }

  // ---- back to steps ----------------------------------------------------------------------------

  Step make_step(const Unit& unit, const Step& old, Program& result) const {
    std::vector<BufferId> reads;
    for_each_access(unit.definition, [&](const loop::ExprNode& read, bool) {
      BufferId id = buffer_id(read.name);
      if (std::find(reads.begin(), reads.end(), id) == reads.end()) reads.push_back(id);
    });
    std::map<std::string, std::string> names;
    Kernel kernel;
    kernel.name = old.kernel;
    kernel.locs = unit.locs;
    kernel.macs = unit.macs;
    kernel.sizes = unit.sizes;
    Step step = old;
    step.buffers.clear();
    const auto add = [&](BufferId id, const std::string& name, AccessMode mode) {
      const Buffer& buffer = program_.buffer(id);
      kernel.buffers.push_back({name, loop::scalar_of(buffer.element), buffer.shape, mode, {}});
      names[buffer_name(id)] = name;
      step.buffers.push_back(id);
    };
    for (size_t i = 0; i < reads.size(); ++i)
      add(reads[i], fmt::format("a{}", i), AccessMode::read);
    add(unit.output(), "out0", AccessMode::write);
    step.sizes.clear();
    for (const std::string& size : kernel.sizes) step.sizes.push_back(Dim::symbol(size));
    Definition definition = rename(unit.definition, names);
    kernel.buffers.back().over = takes_over(kernel, definition);
    kernel.body = loop::define(std::move(definition));
    result.kernels[kernel.name] = std::move(kernel);
    return step;
  }

  /// Read parameters of the output's size whose every read is at the index just being written.
  static std::vector<std::string> takes_over(const Kernel& kernel, const Definition& definition) {
    std::map<std::string, bool> fits;
    const DefinitionOutput& output = definition.outputs[0];
    const BufferParam& out = kernel.buffers.back();
    for_each_access(definition, [&](const loop::ExprNode& read, bool in_reduction) {
      const BufferParam& param = *kernel.find(read.name);
      bool same =
          !in_reduction && param.shape == out.shape &&
          byte_size(loop::element_of(param.element)) == byte_size(loop::element_of(out.element));
      for (size_t i = 0; same && i < read.args.size(); ++i) {
        same = loop::equal(read.args[i], output.indices[i]);
      }
      auto [it, fresh] = fits.emplace(read.name, same);
      if (!fresh) it->second = it->second && same;
    });
    std::vector<std::string> result;
    for (const auto& [name, fit] : fits) {
      if (fit) result.push_back(name);
    }
    return result;
  }

  const Program& program_;
  std::vector<std::optional<Unit>> units_;
  std::map<BufferId, size_t> producer_;           // written buffer → step
  std::map<BufferId, std::set<size_t>> readers_;  // owner → steps that read it
  std::set<size_t> dead_;
  std::set<BufferId> rewritten_;  // owners
};

/// The steps of a list that something needs: last first, each adding what it reads.
std::vector<Step> live_steps(const Program& program, const std::vector<Step>& steps,
                             std::set<BufferId>& needed) {
  std::vector<Step> kept;
  for (size_t s = steps.size(); s-- > 0;) {
    Step step = steps[s];
    bool live = step.kind == loop::StepKind::check_finite;
    for (BufferId id : loop::written_buffers(program, step)) {
      live = live || needed.count(id) || program.buffer(id).kind == BufferClass::state;
    }
    if (!live) continue;
    for (BufferId id : step.buffers) {
      if (id >= 0) needed.insert(program.owner(id));
    }
    // What a trip reads at its beginning, the trip before has to write.
    for (size_t before = needed.size() + 1; before != needed.size();) {
      before = needed.size();
      step.body = live_steps(program, steps[s].body, needed);
      step.otherwise = live_steps(program, steps[s].otherwise, needed);
    }
    kept.push_back(std::move(step));
  }
  return {kept.rbegin(), kept.rend()};
}

}  // namespace

Program remove_dead_kernels(const Program& program) {
  Program result = program;
  for (loop::EntryPoint& entry : result.entries) {
    std::set<BufferId> needed;
    for (BufferId id : entry.outputs) needed.insert(program.owner(id));
    entry.steps = live_steps(program, entry.steps, needed);
  }
  loop::drop_uncalled(result);
  return result;
}

Program fuse(const Program& program) { return remove_dead_kernels(Fusion(program).run()); }

}  // namespace backcast
