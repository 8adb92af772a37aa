#include "passes/schedule/rectified.h"

#include <algorithm>

#include "ir/loop/step_access.h"

namespace backcast {
namespace {

using loop::AccessMode;
using loop::BufferId;
using loop::Expr;
using loop::ExprKind;
using loop::Op;
using loop::Program;
using loop::Step;
using loop::StepKind;

bool is_number(const Expr& e) { return e->kind == ExprKind::constant; }

bool is_zero(const Expr& e) {
  return is_number(e) && loop::is_float(e.type().scalar) && e->float_value == 0;
}

/// Is the value zero wherever a comparison has one of its outcomes?
bool is_rectified(const Expr& e) {
  switch (e->kind) {
    case ExprKind::binary: {
      const Expr &a = e->args[0], &b = e->args[1];
      if (e->op == Op::mul) return is_rectified(a) || is_rectified(b);
      if (e->op != Op::min && e->op != Op::max) return false;
      if (is_number(a) == is_number(b)) return false;
      const Expr& bound = is_number(a) ? a : b;
      const Expr& value = is_number(a) ? b : a;
      if (is_zero(bound)) return true;
      // The other bound of a clipped value leaves zeros as they are.
      const bool keeps = e->op == Op::min ? bound->float_value > 0 : bound->float_value < 0;
      return keeps && is_rectified(value);
    }
    case ExprKind::select:
      return is_zero(e->args[1]) || is_zero(e->args[2]);
    default:
      return false;
  }
}

class Search {
 public:
  explicit Search(const Program& program) : program_(program) {}

  std::set<BufferId> run() {
    for (const loop::EntryPoint& entry : program_.entries) {
      for (const Step& step : entry.steps) see(step);
    }
    std::set<BufferId> result;
    for (const BufferId id : rectified_) {
      if (!others_.count(id)) result.insert(id);
    }
    return result;
  }

 private:
  void see(const Step& step) {
    for (const Step& inner : step.body) see(inner);
    for (const Step& inner : step.otherwise) see(inner);
    if (step.kind == StepKind::copy) others_.insert(program_.owner(step.buffers[1]));
    if (step.kind != StepKind::call) return;
    const loop::Kernel& kernel = program_.kernels.at(step.kernel);
    for (size_t i = 0; i < kernel.buffers.size(); ++i) {
      if (kernel.buffers[i].mode == AccessMode::read) continue;
      const bool zeros = writes_zeros(kernel, kernel.buffers[i].name);
      (zeros ? rectified_ : others_).insert(program_.owner(step.buffers[i]));
    }
  }

  static bool writes_zeros(const loop::Kernel& kernel, const std::string& buffer) {
    const loop::Definition* definition = loop::only_definition(kernel);
    if (!definition) return false;
    const auto& outputs = definition->outputs;
    return std::all_of(outputs.begin(), outputs.end(), [&](const loop::DefinitionOutput& output) {
      return output.buffer != buffer || is_rectified(output.value);
    });
  }

  const Program& program_;
  std::set<BufferId> rectified_, others_;
};

}  // namespace

std::set<BufferId> rectified_buffers(const Program& program) { return Search(program).run(); }

}  // namespace backcast
