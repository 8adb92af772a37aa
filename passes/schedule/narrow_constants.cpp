#include "passes/schedule/narrow_constants.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "ir/loop/add.h"
#include "ir/loop/step_access.h"
#include "ir/loop/words.h"
#include "passes/lower/definition_cost.h"

namespace backcast {
namespace {

using loop::Buffer;
using loop::BufferId;
using loop::Expr;
using loop::ExprKind;
using loop::Kernel;
using loop::Program;
using loop::Scalar;
using loop::Step;

// Fewer are not worth another constant.
constexpr int64_t kFewest = 16;

using Ends = std::pair<int64_t, int64_t>;  // of values, both included

std::optional<Scalar> narrowest(const Buffer& constant) {
  if (constant.value.element_count() < kFewest) return std::nullopt;
  for (const Scalar narrow : {Scalar::u8, Scalar::i8, Scalar::u16, Scalar::i16}) {
    if (loop::fits(constant.value, narrow)) return narrow;
  }
  return std::nullopt;
}

/// Parameters that are read for nothing but places to look up.
std::set<std::string> places_of(const loop::Definition& definition) {
  std::set<std::string> places, others;
  const std::function<void(const Expr&, bool)> walk = [&](const Expr& e, bool in_index) {
    const bool reads = e->kind == ExprKind::access;
    if (reads) (in_index ? places : others).insert(e->name);
    for (const Expr& arg : e->args) walk(arg, in_index || reads);
  };
  for (const loop::Accumulator& acc : definition.accumulators) walk(acc.value, false);
  for (const loop::DefinitionOutput& output : definition.outputs) {
    walk(output.value, false);
  }
  for (const std::string& name : others) places.erase(name);
  return places;
}

/// Of an integer that is read from a parameter, and perhaps converted.
std::optional<Ends> ends_of(Expr e, const std::map<std::string, Ends>& ends) {
  while (e->kind == ExprKind::cast && loop::is_integer(e->args[0].type().scalar)) e = e->args[0];
  const auto found = e->kind == ExprKind::access ? ends.find(e->name) : ends.end();
  return found == ends.end() ? std::nullopt : std::optional(found->second);
}

/// Without the bounds that a constant's values keep to.
Expr unbounded(const Expr& e, const std::map<std::string, Ends>& ends) {
  const bool low = e->kind == ExprKind::binary && e->op == loop::Op::max;
  const bool high = e->kind == ExprKind::binary && e->op == loop::Op::min;
  if (!low && !high) return e;
  for (const size_t side : {0, 1}) {
    int64_t bound = 0;
    const std::optional<Ends> lies = ends_of(e->args[side], ends);
    if (!lies || !loop::as_constant(e->args[1 - side], bound)) continue;
    if (low ? lies->first >= bound : lies->second <= bound) return e->args[side];
  }
  return e;
}

class Narrowing {
 public:
  Narrowing(const Program& program, bool only_places)
      : result_(program), only_places_(only_places) {
    calls_ = loop::count_calls(result_);
    for (loop::EntryPoint& entry : result_.entries) {
      for (const BufferId id : entry.outputs) ++others_[result_.owner(id)];
      for (Step& step : entry.steps) {
        loop::for_each_buffer(step, [&](BufferId id) { ++others_[result_.owner(id)]; });
      }
      loop::for_each_call(entry.steps, [&](Step& step) {
        for_each_constant(step, [&](loop::BufferParam&, BufferId& id) { --others_[id]; });
      });
    }
  }

  Program run() {
    for (loop::EntryPoint& entry : result_.entries) {
      loop::for_each_call(entry.steps, [&](Step& step) { narrow_operands(step); });
    }
    return std::move(result_);
  }

 private:
  /// Calls f(parameter, buffer) for the constants of a call whose definition can be changed.
  template <class F>
  void for_each_constant(Step& step, const F& f) {
    Kernel& kernel = result_.kernels.at(step.kernel);
    if (calls_[step.kernel] != 1 || loop::only_definition(kernel) == nullptr) return;
    for (size_t i = 0; i < kernel.buffers.size(); ++i) {
      loop::BufferParam& param = kernel.buffers[i];
      if (loop::passes_constant(result_, kernel, step, param.name)) f(param, step.buffers[i]);
    }
  }

  bool may_narrow(const Buffer& constant, bool is_place) const {
    return is_place ? constant.element == ElementType::i32 || constant.element == ElementType::i64
                    : constant.element == ElementType::i32 && !only_places_;
  }

  void narrow_operands(Step& step) {
    Kernel& kernel = result_.kernels.at(step.kernel);
    if (loop::only_definition(kernel) == nullptr) return;
    const std::set<std::string> places = places_of(*loop::only_definition(kernel));
    std::map<std::string, Ends> ends;        // by parameter
    std::map<std::string, Scalar> narrowed;  // likewise
    for_each_constant(step, [&](loop::BufferParam& param, BufferId& id) {
      const Buffer& constant = result_.buffer(id);
      const Literal& values = constant.value;
      if (!is_integer(constant.element) || values.element_count() == 0) return;
      const bool is_place = places.count(param.name) > 0;
      if (is_place) {
        const auto [low, high] = std::ranges::minmax(values.as_ints());
        ends[param.name] = {low, high};
      }
      if (!may_narrow(constant, is_place)) return;
      const std::optional<Scalar> narrow = narrowest(constant);
      if (!narrow || others_[id] > 0) return;
      id = narrow_form(id, loop::element_of(*narrow));
      param.element = *narrow;
      narrowed[param.name] = *narrow;
    });
    if (ends.empty() && narrowed.empty()) return;
    loop::Definition definition = *loop::only_definition(kernel);
    transform(definition, [&](const Expr& e) { return unbounded(e, ends); });
    transform(definition, [&](const Expr& e) -> Expr {
      const auto found = e->kind == ExprKind::access ? narrowed.find(e->name) : narrowed.end();
      if (found == narrowed.end()) return e;
      return loop::cast(e.type(), loop::access(e->name, found->second, e->args));
    });
    kernel.body = loop::define(std::move(definition));
  }

  BufferId narrow_form(BufferId id, ElementType element) {
    const auto [known, fresh] = narrow_.try_emplace(id, -1);
    if (fresh) {
      const Buffer& wide = result_.buffer(id);
      known->second = loop::add_constant(result_, wide.name + "_narrow",
                                         wide.value.converted_to(element), wide.loc);
    }
    return known->second;
  }

  Program result_;
  const bool only_places_;
  std::map<std::string, int64_t> calls_;
  std::map<BufferId, int64_t> others_;   // by constant: those who read it as it is
  std::map<BufferId, BufferId> narrow_;  // by constant
};

}  // namespace

Program narrow_constants(const Program& program, const TargetInfo& target) {
  return Narrowing(program, target.vector_bits > 0 && !target.widening_loads).run();
}

}  // namespace backcast
