#include "passes/schedule/stage.h"

#include <algorithm>

#include "ir/graph/error.h"
#include "ir/loop/visit.h"
#include "passes/lower/definition_cost.h"
#include "passes/schedule/affine.h"

namespace backcast {

using loop::Axis;
using loop::Definition;
using loop::Expr;
using loop::ExprKind;

Staged stage_sums(const Definition& definition, const loop::Kernel& kernel,
                  const std::string& vector_axis, const std::string& buffer) {
  Staged result;
  const loop::Accumulator& acc = definition.accumulators.at(0);
  std::vector<Axis> axes;
  for (const Axis& axis : definition.axes) {
    if (axis.name != vector_axis) axes.push_back(axis);
  }
  for (const Axis& axis : definition.axes) {
    if (axis.name == vector_axis) axes.push_back(axis);
  }
  std::vector<Expr> indices;
  for (const Axis& axis : axes) {
    indices.push_back(loop::var(axis.name));
    result.shape.push_back(Dim(static_extent(axis).value()));
  }
  result.first = definition;
  result.first.outputs = {{buffer, indices, loop::var(acc.name, acc.type)}};

  const Expr sum = loop::access(buffer, acc.type.scalar, indices);
  result.second.axes = axes;
  result.second.outputs = definition.outputs;
  for (loop::DefinitionOutput& output : result.second.outputs) {
    output.value = loop::substitute(output.value, {{acc.name, sum}});
  }
  const loop::DefinitionOutput& output = definition.outputs.at(0);
  const Expr flat = loop::flat_index(kernel.find(output.buffer)->shape, output.indices);
  std::stable_sort(result.second.axes.begin(), result.second.axes.end(),
                   [&](const Axis& a, const Axis& b) {
                     return coefficient(flat, a.name).value() > coefficient(flat, b.name).value();
                   });
  return result;
}

Staged stage_operand(const Definition& definition, const NestSchedule& schedule,
                     const std::string& name, const std::string& buffer) {
  const Packing& packing = schedule.packed.at(name);
  Staged result;
  std::map<std::string, Expr> place;  // where the copy is read from
  std::vector<Expr> written, read;
  const auto add = [&](const std::string& axis, int64_t extent, bool reversed) {
    const Expr here = loop::var(axis), mirrored = Expr(extent - 1) - here;
    place[axis] = reversed ? mirrored : here;
    written.push_back(here);
    read.push_back(reversed ? mirrored : here);
    result.first.axes.push_back({axis, Expr(extent)});
    result.shape.push_back(Dim(extent));
  };
  for (size_t i = 0; i < packing.outer.size(); ++i) {
    add(packing.outer[i], packing.outer_extents[i], false);
  }
  for (size_t i = 0; i < packing.reduce.size(); ++i) {
    add(packing.reduce[i], packing.reduce_extents[i], packing.reversed[i]);
  }
  for (const Axis& axis : definition.axes) {
    if (axis.name == schedule.vector_axis) add(axis.name, static_extent(axis).value(), false);
  }
  result.second = definition;
  transform(result.second, [&](const Expr& e) -> Expr {
    if (e->kind != ExprKind::access || e->name != name) return e;
    Expr copied = loop::access(name, e.type().scalar, e->args);
    result.first.outputs = {{buffer, written, loop::substitute(copied, place)}};
    return loop::access(buffer, e.type().scalar, read);
  });
  BC_CHECK(!result.first.outputs.empty(), "no access to {}", name);
  return result;
}

}  // namespace backcast
