#include "passes/schedule/narrow_constants.h"

#include <map>
#include <optional>
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

std::optional<Scalar> narrowest(const Buffer& constant) {
  if (constant.element != ElementType::i32) return std::nullopt;
  if (constant.value.element_count() < kFewest) return std::nullopt;
  for (const Scalar narrow : {Scalar::u8, Scalar::i8, Scalar::u16, Scalar::i16}) {
    if (loop::fits(constant.value, narrow)) return narrow;
  }
  return std::nullopt;
}

class Narrowing {
 public:
  explicit Narrowing(const Program& program) : result_(program) {
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

  void narrow_operands(Step& step) {
    Kernel& kernel = result_.kernels.at(step.kernel);
    std::map<std::string, Scalar> narrowed;  // by parameter
    for_each_constant(step, [&](loop::BufferParam& param, BufferId& id) {
      const std::optional<Scalar> narrow = narrowest(result_.buffer(id));
      if (!narrow || others_[id] > 0) return;
      id = narrow_form(id, loop::element_of(*narrow));
      param.element = *narrow;
      narrowed[param.name] = *narrow;
    });
    if (narrowed.empty()) return;
    loop::Definition definition = *loop::only_definition(kernel);
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
  std::map<std::string, int64_t> calls_;
  std::map<BufferId, int64_t> others_;   // by constant: those who read it as it is
  std::map<BufferId, BufferId> narrow_;  // by constant
};

}  // namespace

Program narrow_constants(const Program& program, const TargetInfo& target) {
  if (target.vector_bits > 0 && !target.widening_loads) return program;
  return Narrowing(program).run();
}

}  // namespace backcast
