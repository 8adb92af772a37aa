#include "passes/schedule/rectified.h"

#include <algorithm>

#include "ir/loop/liveness.h"

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

bool writes_zeros(const loop::Kernel& kernel, const std::string& buffer) {
  const loop::Definition* definition = loop::only_definition(kernel);
  if (!definition) return false;
  const auto& outputs = definition->outputs;
  return std::all_of(outputs.begin(), outputs.end(), [&](const loop::DefinitionOutput& output) {
    return output.buffer != buffer || is_rectified(output.value);
  });
}

}  // namespace

std::set<BufferId> rectified_buffers(const Program& program) {
  std::set<BufferId> result, others;
  for (const loop::EntryPoint& entry : program.entries) {
    for (const Step* step : loop::flat_steps(entry.steps)) {
      if (step->kind == StepKind::copy) others.insert(program.owner(step->buffers[1]));
      if (step->kind != StepKind::call) continue;
      const loop::Kernel& kernel = program.kernels.at(step->kernel);
      for (size_t i = 0; i < kernel.buffers.size(); ++i) {
        if (kernel.buffers[i].mode == AccessMode::read) continue;
        const bool zeros = writes_zeros(kernel, kernel.buffers[i].name);
        (zeros ? result : others).insert(program.owner(step->buffers[i]));
      }
    }
  }
  for (const BufferId id : others) result.erase(id);
  return result;
}

}  // namespace backcast
