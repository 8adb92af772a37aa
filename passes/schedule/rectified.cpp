#include "passes/schedule/rectified.h"

#include <algorithm>

#include "ir/loop/liveness.h"
#include "ir/loop/step_access.h"
#include "passes/schedule/affine.h"

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

/// What a kernel writes, given what is known of the buffers that a step passes to it.
class Values {
 public:
  Values(const Program& program, const Step& step, const std::set<BufferId>& nonnegative)
      : program_(program),
        step_(step),
        kernel_(program.kernels.at(step.kernel)),
        definition_(loop::only_definition(kernel_)),
        nonnegative_(nonnegative) {}

  bool are_rectified(const std::string& buffer) const {
    return all_written(buffer, [this](const Expr& value) { return is_rectified(value); });
  }

  bool are_nonnegative(const std::string& buffer) const {
    return all_written(buffer, [this](const Expr& value) { return is_nonnegative(value); });
  }

 private:
  template <class F>
  bool all_written(const std::string& buffer, const F& holds) const {
    if (!definition_) return false;
    const auto& outputs = definition_->outputs;
    return std::all_of(outputs.begin(), outputs.end(), [&](const loop::DefinitionOutput& output) {
      return output.buffer != buffer || holds(output.value);
    });
  }

  /// Is the value zero wherever a comparison has one of its outcomes?
  bool is_rectified(const Expr& e) const {
    switch (e->kind) {
      case ExprKind::binary: {
        const Expr &a = e->args[0], &b = e->args[1];
        if (e->op == Op::mul) return is_rectified(a) || is_rectified(b);
        if (e->op != Op::min && e->op != Op::max) return false;
        if (is_number(a) == is_number(b)) return false;
        const Expr& bound = is_number(a) ? a : b;
        const Expr& value = is_number(a) ? b : a;
        if (is_zero(bound)) return !adds_nonnegative(value);
        // The other bound of a clipped value leaves zeros as they are.
        const bool keeps = e->op == Op::min ? bound->float_value > 0 : bound->float_value < 0;
        return keeps && is_rectified(value);
      }
      case ExprKind::select:
        return is_zero(e->args[1]) || is_zero(e->args[2]);
      case ExprKind::cast:  // rounded, if anything
        return is_rectified(e->args[0]);
      default:
        return false;
    }
  }

  /// A residual that is never negative keeps most sums from being so, and so does the offset of a
  /// hard swish.
  bool adds_nonnegative(const Expr& e) const {
    if (e->kind == ExprKind::binary && e->op == Op::add) {
      return adds_nonnegative(e->args[0]) || adds_nonnegative(e->args[1]);
    }
    if (is_number(e)) return e->float_value > 0;
    return e->kind != ExprKind::var && is_nonnegative(e);
  }

  bool is_nonnegative(const Expr& e) const {
    const auto each = [this](const Expr& arg) { return is_nonnegative(arg); };
    switch (e->kind) {
      case ExprKind::constant:
        return loop::is_float(e.type().scalar) && e->float_value >= 0;
      case ExprKind::access:
        return nonnegative_.count(program_.owner(loop::buffer_of(kernel_, step_, e->name))) > 0;
      case ExprKind::binary:
        if (e->op == Op::max) return std::any_of(e->args.begin(), e->args.end(), each);
        return (e->op == Op::add || e->op == Op::mul || e->op == Op::div || e->op == Op::min) &&
               std::all_of(e->args.begin(), e->args.end(), each);
      case ExprKind::select:
      case ExprKind::if_then_else:
        return is_nonnegative(e->args[1]) && is_nonnegative(e->args[2]);
      case ExprKind::cast:
        return loop::is_float(e.type().scalar) && is_nonnegative(e->args[0]);
      case ExprKind::var:
        return is_nonnegative_sum(e->name);
      default:
        return false;
    }
  }

  bool is_nonnegative_sum(const std::string& name) const {
    for (const loop::Accumulator& acc : definition_->accumulators) {
      if (acc.name != name || acc.combine == loop::Combine::general) continue;
      std::vector<Expr> guard;
      const Expr value = without_guard(acc, guard);
      // A maximum begins with the smallest of all floats.
      const bool begins = acc.combine == loop::Combine::max || is_nonnegative(acc.init);
      return begins && is_nonnegative(value);
    }
    return false;
  }

  const Program& program_;
  const Step& step_;
  const loop::Kernel& kernel_;
  const loop::Definition* definition_;
  const std::set<BufferId>& nonnegative_;
};

}  // namespace

std::set<BufferId> rectified_buffers(const Program& program) {
  std::set<BufferId> result, others, nonnegative;
  for (const loop::EntryPoint& entry : program.entries) {
    for (const Step* step : loop::flat_steps(entry.steps)) {
      if (step->kind == StepKind::copy) others.insert(program.owner(step->buffers[1]));
      if (step->kind != StepKind::call) continue;
      const Values values(program, *step, nonnegative);
      const loop::Kernel& kernel = program.kernels.at(step->kernel);
      for (size_t i = 0; i < kernel.buffers.size(); ++i) {
        if (kernel.buffers[i].mode == AccessMode::read) continue;
        const std::string& name = kernel.buffers[i].name;
        const BufferId to = program.owner(step->buffers[i]);
        (values.are_rectified(name) ? result : others).insert(to);
        if (values.are_nonnegative(name)) nonnegative.insert(to);
      }
    }
  }
  for (const BufferId id : others) result.erase(id);
  return result;
}

}  // namespace backcast
