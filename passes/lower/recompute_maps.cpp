#include "passes/lower/recompute_maps.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "ir/loop/step_access.h"
#include "ir/loop/visit.h"
#include "passes/lower/definition_cost.h"
#include "passes/lower/fusion_unit.h"
#include "passes/lower/unit_list.h"

namespace backcast {
namespace {

using loop::BufferId;
using loop::Definition;
using loop::Expr;
using loop::ExprKind;
using loop::Program;
using loop::Step;

// Operations per element, in all who read a value, that are worth less than keeping it: a math
// function is not.
constexpr int64_t kMostOperations = 16;
constexpr size_t kMostParams = 12;

class Recomputing {
 public:
  Recomputing(const Program& program, const std::vector<Step>& steps)
      : program_(program), steps_(steps), list_(program, steps, {}) {
    for (size_t s = 0; s < steps.size(); ++s) {
      for (BufferId id : loop::written_buffers(program, steps[s])) writers_[id].insert(s);
      if (list_.admit(s)) list_.publish(s);
    }
    find_late();
  }

  /// The steps, with the kernels of those that changed in `result`.
  std::vector<Step> run(Program& result) {
    for (size_t p = 0; p < steps_.size(); ++p) {
      if (late_[p] || !list_.has(p) || late_readers(list_.at(p).outputs()[0]).empty()) continue;
      if (only_spreads(p)) continue;
      if (!recompute(p)) kept_.insert(program_.owner(list_.at(p).outputs()[0]));
    }
    std::vector<Step> to = steps_;
    for (size_t s : changed_) {
      loop::Kernel kernel;
      to[s] = step_of(program_, list_.at(s), steps_[s], kernel);
      result.kernels[kernel.name] = std::move(kernel);
    }
    return to;
  }

 private:
  /// Steps that depend on the loss. An adjoint that only depends on what the layer had, such as a
  /// rectifier's mask, counts as part of the forward pass: it can be made, and kept, there.
  void find_late() {
    late_.assign(steps_.size(), 0);
    std::vector<size_t> ready(steps_.size());  // the last step of the forward pass it depends on
    const auto is_adjoint = [&](size_t s) { return steps_[s].loc.origin == Origin::adjoint_of; };
    size_t end = 0;
    for (size_t s = 0; s < steps_.size(); ++s) {
      ready[s] = s;
      if (!is_adjoint(s)) continue;
      ready[s] = 0;
      for (BufferId id : loop::read_buffers(program_, steps_[s])) {
        const auto found = writers_.find(id);
        if (found == writers_.end()) continue;
        const auto next = found->second.lower_bound(s);
        if (next == found->second.begin()) continue;
        ready[s] = std::max(ready[s], ready[*std::prev(next)]);
      }
      end = std::max(end, ready[s]);
    }
    for (size_t s = 0; s < steps_.size(); ++s) late_[s] = is_adjoint(s) && ready[s] == end;
  }

  std::vector<size_t> late_readers(BufferId id) const {
    std::vector<size_t> result;
    for (size_t s : list_.readers(id)) {
      if (late_[s]) result.push_back(s);
    }
    return result;
  }

  /// Made of what takes no room, such as a bias of many positions: whoever reads it will do the
  /// same.
  bool only_spreads(size_t p) const {
    const Definition& definition = list_.at(p).definition;
    const int64_t all = points(definition, program_.symbols);
    const std::set<BufferId> from = operands(definition);
    return std::ranges::all_of(from, [&](BufferId id) { return is_shared(program_, id, all); });
  }

  /// Has all late readers of a step's value read what it is made of, if that is worth it.
  bool recompute(size_t p) {
    const BufferId value = list_.at(p).outputs()[0];
    const int64_t all = points(list_.at(p).definition, program_.symbols);
    if (all <= kSmallTensor || !is_candidate(p)) return false;
    const std::vector<size_t> readers = late_readers(value);
    const std::optional<Unit> made = made_of_kept(p, readers.back());
    if (!made) return false;
    int64_t operations = 0;
    std::map<size_t, Unit> rewritten;
    for (size_t r : readers) {
      if (!list_.has(r) || points(list_.at(r).definition, program_.symbols) > all) return false;
      Unit unit = list_.at(r);
      bool complete = true;
      transform(unit.definition, [&](const Expr& e) -> Expr {
        if (e->kind != ExprKind::access || !reads(*e, value)) return e;
        const std::optional<Source> from = list_.source(*e);
        complete = complete && from && from->step == p;
        if (!complete) return e;
        operations += cost(made->definition).total();
        return value_at(made->definition, from->indices);
      });
      lift_guards(unit.definition);
      if (!complete || params(unit.definition) > kMostParams) return false;
      adopt(unit, *made);
      rewritten.emplace(r, std::move(unit));
    }
    if (operations > kMostOperations) return false;
    for (auto& [r, unit] : rewritten) {
      list_.at(r) = std::move(unit);
      changed_.insert(r);
    }
    return true;
  }

  bool reads(const loop::ExprNode& access, BufferId value) const {
    return program_.owner(buffer_id(access.name)) == program_.owner(value);
  }

  /// Elementwise, cheap, and written once into memory that could serve something else.
  bool is_candidate(size_t p) const {
    const Unit& unit = list_.at(p);
    const BufferId owner = program_.owner(unit.outputs()[0]);
    if (!unit.is_map() || !writes_at_its_axes(unit.definition) ||
        program_.buffer(owner).kind != loop::BufferClass::arena ||
        writers_.at(owner) != std::set<size_t>{p}) {
      return false;
    }
    bool chooses = false;
    loop::visit(unit.definition.outputs[0].value,
                [&](const Expr& e) { chooses = chooses || e->kind == ExprKind::if_then_else; });
    const DefinitionCost price = cost(unit.definition);
    return !chooses && price.indirect == 0 && price.arithmetic < kMathFunctionCost;
  }

  /// The step's unit with everything large taken in that is not kept until step `until`; nothing
  /// where that goes down to something else than such elementwise steps.
  std::optional<Unit> made_of_kept(size_t p, size_t until) const {
    Unit unit = list_.at(p);
    const int64_t all = points(unit.definition, program_.symbols);
    for (bool again = true; again;) {
      again = false;
      bool fits = true;
      std::set<size_t> taken;
      transform(unit.definition, [&](const Expr& e) -> Expr {
        if (e->kind != ExprKind::access) return e;
        const BufferId id = buffer_id(e->name);
        if (stays(id, until) && (is_shared(program_, id, all) || is_kept(id))) return e;
        const std::optional<Source> from = list_.source(*e);
        fits = fits && from && !late_[from->step] && is_candidate(from->step) &&
               points(list_.at(from->step).definition, program_.symbols) <= all;
        if (!fits) return e;
        again = true;
        taken.insert(from->step);
        return value_at(list_.at(from->step).definition, from->indices);
      });
      if (!fits || cost(unit.definition).total() > kMostOperations) return std::nullopt;
      for (size_t step : taken) adopt(unit, list_.at(step));
    }
    return unit;
  }

  /// Whether a buffer holds at step `until` what it held before.
  bool stays(BufferId id, size_t until) const {
    const BufferId owner = program_.owner(id);
    const auto found = writers_.find(owner);
    if (found == writers_.end() || *found->second.begin() > until) return true;
    return found->second.size() == 1 && program_.buffer(owner).kind == loop::BufferClass::arena;
  }

  bool is_kept(BufferId id) const {
    const BufferId owner = program_.owner(id);
    if (program_.buffer(owner).kind != loop::BufferClass::arena) return true;
    return kept_.count(owner) > 0;
  }

  const Program& program_;
  const std::vector<Step>& steps_;
  UnitList list_;
  std::map<BufferId, std::set<size_t>> writers_;  // owner → steps
  std::vector<char> late_;
  std::set<BufferId> kept_;  // owners of what late steps go on reading
  std::set<size_t> changed_;
};

}  // namespace

Program recompute_maps(const Program& program) {
  Program result = program;
  for (loop::EntryPoint& entry : result.entries) {
    entry.steps = Recomputing(program, entry.steps).run(result);
  }
  return result;
}

}  // namespace backcast
