// See sum_slices.h.
#include "passes/schedule/sum_slices.h"

#include <algorithm>
#include <map>
#include <set>

#include "ir/loop/add.h"
#include "ir/loop/step_access.h"
#include "ir/loop/visit.h"
#include "passes/lower/definition_cost.h"
#include "passes/schedule/affine.h"

namespace backcast {
namespace {

using loop::Axis;
using loop::Buffer;
using loop::BufferId;
using loop::Definition;
using loop::Expr;
using loop::Kernel;
using loop::Program;
using loop::Step;
using loop::StmtKind;

// The sums of all slices, as a part of what the slices are summed over.
constexpr int64_t kPart = 8;

class Slicing {
 public:
  Slicing(const Program& program, const TargetInfo& target) : target_(target), result_(program) {}

  Program run() {
    if (target_.l2_bytes == 0 || target_.vector_bits == 0) return result_;
    calls_ = loop::count_calls(result_);
    for (loop::EntryPoint& entry : result_.entries) {
      std::vector<Step> steps;
      for (Step& step : entry.steps) {
        if (step.kind == loop::StepKind::call && calls_[step.kernel] == 1) slice(step, steps);
        steps.push_back(std::move(step));
      }
      entry.steps = std::move(steps);
    }
    return std::move(result_);
  }

 private:
  /// Bytes of what is summed over; 0 when there is something else than f32 or unknown sizes.
  static int64_t summed_bytes(const Definition& definition, const Kernel& kernel) {
    std::set<std::string> names;
    for_each_access(definition, [&](const loop::ExprNode& read, bool in_reduction) {
      if (in_reduction) names.insert(read.name);
    });
    int64_t bytes = 0;
    for (const std::string& name : names) {
      const std::optional<int64_t> size = static_bytes(*kernel.find(name));
      if (!size || kernel.find(name)->element != loop::Scalar::f32) return 0;
      bytes += *size;
    }
    return bytes;
  }

  /// The reduction axis along which every operand falls into slices of its own; null when there is
  /// none.
  static const Axis* outer_axis(const Definition& definition, const Kernel& kernel) {
    for (const Axis& axis : definition.reduce_axes) {
      bool fits = static_extent(axis).value_or(0) > 1;
      loop::visit(definition.accumulators[0].value, [&](const Expr& e) {
        fits =
            fits && (e->kind != loop::ExprKind::if_then_else || !mentions(e->args[0], axis.name));
      });
      for_each_access(definition, [&](const loop::ExprNode& read, bool in_reduction) {
        if (!in_reduction) return;
        const Dims& shape = kernel.find(read.name)->shape;
        const Expr flat = loop::flat_index(shape, read.args);
        const int64_t count = TensorType{ElementType::f32, shape}.element_count().constant();
        fits = fits && coefficient(flat, axis.name) == count / *static_extent(axis);
      });
      if (fits) return &axis;
    }
    return nullptr;
  }

  /// The axes of a slice's sums, one along which an operand lies contiguous last.
  static std::vector<Axis> axes_of_sums(const Definition& definition, const Kernel& kernel) {
    std::vector<Axis> axes = definition.axes;
    std::stable_partition(axes.begin(), axes.end(), [&](const Axis& axis) {
      bool contiguous = false;
      for_each_access(definition, [&](const loop::ExprNode& read, bool in_reduction) {
        const Expr flat = loop::flat_index(kernel.find(read.name)->shape, read.args);
        contiguous = contiguous || (in_reduction && coefficient(flat, axis.name) == 1);
      });
      return !contiguous || static_extent(axis) < 4;
    });
    return axes;
  }

  /// Some operand serves several results: each pass over it computes a few of them.
  static bool reads_again(const Definition& definition, const Kernel& kernel) {
    bool again = false;
    for_each_access(definition, [&](const loop::ExprNode& read, bool in_reduction) {
      const Expr flat = loop::flat_index(kernel.find(read.name)->shape, read.args);
      for (const Axis& axis : definition.axes) {
        again = again || (in_reduction && !mentions(flat, axis.name));
      }
    });
    return again;
  }

  bool pays(const Definition& definition, const Kernel& kernel, const Axis& slices) const {
    const int64_t bytes = summed_bytes(definition, kernel), count = *static_extent(slices);
    int64_t sums = 1;
    for (const Axis& axis : definition.axes) {
      const std::optional<int64_t> extent = static_extent(axis);
      if (!extent) return false;
      sums *= *extent;
    }
    const bool one_pass = sums / target_.vector_lanes(4) <= target_.vector_registers / 2;
    return !one_pass && reads_again(definition, kernel) && bytes > target_.l2_bytes &&
           bytes / count <= target_.l2_bytes / 2 && sums * 4 * count <= bytes / kPart;
  }

  void slice(Step& step, std::vector<Step>& before) {
    Kernel& kernel = result_.kernels.at(step.kernel);
    if (kernel.body->kind != StmtKind::define || !step.sizes.empty()) return;
    const Definition definition = *kernel.body->definition;
    if (definition.accumulators.size() != 1 || definition.reduce_axes.size() < 2) return;
    const loop::Accumulator& acc = definition.accumulators[0];
    if (acc.combine != loop::Combine::sum || acc.type.scalar != loop::Scalar::f32) return;
    if (acc.init->kind != loop::ExprKind::constant || acc.init->float_value != 0) return;
    const Axis* slices = outer_axis(definition, kernel);
    if (slices == nullptr || !pays(definition, kernel, *slices)) return;
    split(definition, *slices, kernel, step, before);
  }

  void split(const Definition& definition, const Axis& slices, Kernel& kernel, Step& step,
             std::vector<Step>& before) {
    std::string parameter = "slices";
    while (kernel.find(parameter)) parameter += "_";
    Definition first = definition, second = definition;
    first.axes = axes_of_sums(definition, kernel);
    first.axes.insert(first.axes.begin(), slices);
    std::erase_if(first.reduce_axes, [&](const Axis& axis) { return axis.name == slices.name; });
    std::vector<Expr> place;
    Dims shape;
    for (const Axis& axis : first.axes) {
      place.push_back(loop::var(axis.name));
      shape.push_back(Dim(*static_extent(axis)));
    }
    const loop::Accumulator& acc = definition.accumulators[0];
    first.outputs = {{parameter, place, loop::var(acc.name, acc.type)}};
    second.reduce_axes = {slices};
    second.accumulators[0].value = loop::access(parameter, loop::Scalar::f32, place);
    add_step(std::move(first), parameter, shape, kernel, step, before);
    kernel.body = loop::define(std::move(second));
    loop::drop_unread(kernel, step);
  }

  /// A kernel that writes the sums of the slices to a new buffer, which `kernel` reads.
  void add_step(Definition definition, const std::string& parameter, const Dims& shape,
                Kernel& kernel, Step& step, std::vector<Step>& before) {
    Kernel sums;
    sums.locs = kernel.locs;
    sums.macs = kernel.macs;
    kernel.macs = 0;
    Step call = step;
    call.buffers.clear();
    for_each_access(definition, [&](const loop::ExprNode& read, bool) {
      if (sums.find(read.name)) return;
      sums.buffers.push_back(*kernel.find(read.name));
      call.buffers.push_back(loop::buffer_of(kernel, step, read.name));
    });
    sums.buffers.push_back({parameter, loop::Scalar::f32, shape, loop::AccessMode::write, {}});
    sums.body = loop::define(std::move(definition));
    const std::string wish = kernel.name + "_" + parameter;
    Buffer buffer;
    buffer.shape = shape;
    buffer.alignment = target_.vector_bits / 8;
    buffer.loc = step.loc;
    const BufferId id = loop::add_buffer(result_, wish, std::move(buffer));
    call.buffers.push_back(id);
    kernel.buffers.insert(kernel.buffers.begin(),
                          {parameter, loop::Scalar::f32, shape, loop::AccessMode::read, {}});
    step.buffers.insert(step.buffers.begin(), id);
    call.kernel = loop::add_kernel(result_, wish, std::move(sums));
    before.push_back(std::move(call));
  }

  const TargetInfo& target_;
  Program result_;
  std::map<std::string, int64_t> calls_;
};

}  // namespace

Program sum_slices(const Program& program, const TargetInfo& target) {
  return Slicing(program, target).run();
}

}  // namespace backcast
